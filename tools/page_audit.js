// What is wrong with a page for who has a small screen, a keyboard alone, a screen reader or weak eyes; one text each.
() => {
  const wrong = [];
  const shown = (node) => node.getClientRects().length > 0 && getComputedStyle(node).visibility === "visible";
  const called = (node) => `<${node.localName}> ${(node.textContent || node.name || "").trim().slice(0, 40)}`;

  const root = document.scrollingElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`the page is ${root.scrollWidth} wide on a screen of ${root.clientWidth}`);
  if (document.querySelectorAll("h1").length !== 1) wrong.push("there is not one heading");
  if (!document.documentElement.lang) wrong.push("no language is named");
  if (document.querySelector("main script, main iframe, main object")) wrong.push("markup came in");

  for (const node of document.querySelectorAll("input, select, textarea, button, meter")) {
    const name = node.getAttribute("aria-label") || [...(node.labels || [])].map((label) => label.textContent).join("") || node.textContent;
    if (!name.trim()) wrong.push(`${called(node)} has no label`);
    if (node.tabIndex < 0 && node.localName !== "meter") wrong.push(`${called(node)} is out of the keyboard's reach`);
  }
  for (const node of document.querySelectorAll("[onclick], [role=button]")) wrong.push(`${called(node)} is a button that is none`);
  for (const node of document.querySelectorAll("svg[role=img]")) if (!node.getAttribute("aria-label")) wrong.push("a picture without words");

  const numbers = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = numbers(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let looked = 0; looked < 3000 && walker.nextNode(); looked++) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !shown(node) || node.disabled) continue;
    const [a, b] = [light(numbers(getComputedStyle(node).color)), light(ground(node))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) wrong.push(`${called(node)} has a contrast of ${contrast.toFixed(1)}; 4.5 is to be`);
  }
  return [...new Set(wrong)];
}
