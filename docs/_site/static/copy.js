// A button on every block of code. Of a session in a shell it copies what is typed, without prompts and answers.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll(".content div.highlight")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", async () => {
      const text = block.querySelector("pre").innerText;
      const typed = text.split("\n").filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
      await navigator.clipboard.writeText(typed.length ? typed.join("\n") : text.trimEnd());
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
    block.append(button);
  }
});
