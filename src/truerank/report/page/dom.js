// Elements are built from text, never from markup: whatever a name contains is shown as it is.
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

export const DATA = JSON.parse(document.getElementById("data").textContent);
export const PAGE = document.getElementById("page");

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // browsers that allow no clipboard on a local file still copy what is selected
    const area = el("textarea", { class: "off-screen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

export function button(label, onclick, attributes = {}) {
  return el("button", { type: "button", onclick, ...attributes }, label);
}

// A button that shows and hides; it says so to screen readers.
export function toggle(label, pressed, onchange, attributes = {}) {
  const element = button(
    label,
    () => {
      const now = element.getAttribute("aria-pressed") !== "true";
      element.setAttribute("aria-pressed", now);
      onchange(now);
    },
    { "aria-pressed": String(pressed), ...attributes },
  );
  return element;
}
