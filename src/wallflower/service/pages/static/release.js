// What a mark of the picture says, beside the pointer. Without this script the browser shows the same as a title.
"use strict";

const picture = document.getElementById("picture");
if (picture) {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);

  for (const title of picture.querySelectorAll(".mark > title")) {
    title.parentElement.dataset.said = title.textContent;
    title.remove();
  }

  const show = (event) => {
    const mark = event.target.closest(".mark");
    tip.hidden = mark === null;
    if (mark === null) return;
    tip.textContent = mark.dataset.said;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.pageX + 14, window.scrollX + room))}px`;
    tip.style.top = `${event.pageY + 18}px`;
  };
  picture.addEventListener("pointermove", show);
  picture.addEventListener("pointerdown", show);
  picture.addEventListener("pointerleave", () => { tip.hidden = true; });
  window.addEventListener("resize", () => { tip.hidden = true; }); // its place is that of another width
}
