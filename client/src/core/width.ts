// How wide an element is, now and later.
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
