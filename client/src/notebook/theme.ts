// Light or dark, as what is behind the widget is; takes the place of core/theme.
import { signal } from "@preact/signals";

export const isDark = signal(false);
const ALPHA = 0.5; // below, a background is seen through

/** Follows the page that this element stands on; ends when what is given back is called. */
export function followTheme(place: HTMLElement): () => void {
  const look = () => (isDark.value = luminance(place) < 0.5);
  const watching = new MutationObserver(look);
  for (const one of [document.documentElement, document.body]) watching.observe(one, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", look);
  const seen = new ResizeObserver(look); // a widget is made before it is put on the page
  seen.observe(place);
  look();
  return () => {
    watching.disconnect();
    seen.disconnect();
    system.removeEventListener("change", look);
  };
}

/** How light the first background behind an element is that one does not see through, from 0 to 1. */
function luminance(place: Element): number {
  for (let one: Element | null = place; one; one = one.parentElement) {
    const [red = 255, green = 255, blue = 255, alpha = 1] = getComputedStyle(one).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [];
    if (alpha > ALPHA) return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
  }
  return 1;
}
