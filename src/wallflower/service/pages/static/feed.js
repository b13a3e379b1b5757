// A file chosen on the page of a watch is put into its form. Without this file its lines are pasted.
"use strict";

const chooser = document.querySelector("input[type=file][data-into]");
if (chooser) {
  document.getElementById("file-field").hidden = false;
  const said = document.getElementById("file-said"), text = document.getElementById(chooser.dataset.into);
  chooser.addEventListener("change", async () => {
    const [file] = chooser.files;
    if (!file) return;
    if (file.size > Number(chooser.dataset.most)) {
      said.textContent = "The file is too large for a page. Feed it over HTTP, or in parts.";
      return;
    }
    text.value = await file.text();
    said.textContent = `${file.name} is in the form. Nothing is decided before you send it.`;
  });
}
