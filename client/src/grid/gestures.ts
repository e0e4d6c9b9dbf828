// What fingers, a mouse and a wheel do on a canvas.
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface Gestures {
  hover: (x: number, y: number) => void;
  leave: () => void;
  tap: (x: number, y: number) => void;
  pan: (dx: number, dy: number) => void;
  zoom: (factor: number, x: number, y: number) => boolean; // whether there was anything to zoom
}

const STILL = 5; // pixels that a tap may move

/** Calls what `gestures` has, with places in CSS pixels of the canvas. */
export function useGestures(place: RefObject<HTMLCanvasElement | null>, gestures: Gestures): void {
  const now = useRef(gestures);
  now.current = gestures;
  useEffect(() => {
    const canvas = place.current!;
    const down = new Map<number, { x: number; y: number }>();
    let moved = 0;
    const at = (event: MouseEvent) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const press = (event: PointerEvent) => {
      if (event.pointerType === "mouse" && event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId); // one quick move may lead out of the canvas
      down.set(event.pointerId, at(event));
      if (down.size === 1) moved = 0;
    };
    const move = (event: PointerEvent) => {
      const here = at(event), before = down.get(event.pointerId);
      if (!before) return now.current.hover(here.x, here.y);
      down.set(event.pointerId, here);
      moved += Math.hypot(here.x - before.x, here.y - before.y);
      const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const far = (a: { x: number; y: number }) => Math.max(20, Math.hypot(a.x - other.x, a.y - other.y));
        now.current.zoom(far(here) / far(before), (here.x + other.x) / 2, (here.y + other.y) / 2);
      } else if (moved > STILL) {
        now.current.pan(here.x - before.x, here.y - before.y);
      }
    };
    const release = (event: PointerEvent) => {
      const last = down.get(event.pointerId);
      if (!last) return;
      down.delete(event.pointerId);
      if (event.type === "pointerup" && moved <= STILL && down.size === 0) now.current.tap(last.x, last.y);
    };
    const leave = (event: PointerEvent) => {
      if (event.pointerType === "mouse") now.current.leave();
    };
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls; two fingers that pinch count as Ctrl
      const { x, y } = at(event), turned = event.deltaY * (event.deltaMode === 1 ? 16 : 1);
      if (now.current.zoom(Math.exp(-turned / 500), x, y)) event.preventDefault();
    };
    canvas.addEventListener("pointerdown", press);
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", leave);
    canvas.addEventListener("wheel", wheel, { passive: false });
    return () => {
      canvas.removeEventListener("pointerdown", press);
      canvas.removeEventListener("pointermove", move);
      canvas.removeEventListener("pointerup", release);
      canvas.removeEventListener("pointercancel", release);
      canvas.removeEventListener("pointerleave", leave);
      canvas.removeEventListener("wheel", wheel);
    };
  }, []);
}
