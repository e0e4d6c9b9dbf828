// How wide an element is, now and later, and how large letters are.
import { useLayoutEffect, useState } from "preact/hooks";

/** In whole pixels, without its border; 0 until it is known. */
export function useWidth(place: { current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = () => setWidth(place.current!.clientWidth);
    const watch = new ResizeObserver(measure);
    watch.observe(place.current!);
    measure();
    return () => watch.disconnect();
  }, []);
  return width;
}

/** How many times as large as 16 pixels the page's letters are: 1, and more on a very wide screen. */
export const letterScale = (): number => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
