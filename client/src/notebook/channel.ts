// Asks Python through the messages of a widget; takes the place of core/batch.
import type { Reply } from "../core/batch";

/** What a widget shows, held by Python; as anywidget gives it. */
export interface WidgetModel {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, heard: (message: unknown) => void): void;
  off(event: string, heard: (message: unknown) => void): void;
  send(message: object): void;
}
interface Message {
  id?: number;
  status: number;
  found: unknown;
}

const models: WidgetModel[] = []; // answers do not depend on whom one asks: the newest that is shown
const waiting = new Map<number, (reply: Reply) => void>();
let ids = 0;
export const HEADERS = {}; // of pictures, which the widget does not ask for

/** Questions may go through this model until what is given back is called. */
export function connect(model: WidgetModel): () => void {
  const heard = (message: unknown) => {
    const { id, status, found } = message as Message;
    if (id === undefined) return;
    waiting.get(id)?.({ status, found, length: JSON.stringify(found).length });
    waiting.delete(id);
  };
  models.push(model);
  model.on("msg:custom", heard);
  return () => {
    models.splice(models.indexOf(model), 1);
    model.off("msg:custom", heard);
  };
}

/** The reply to one question. */
export function send(panel: string, question: object, _asker: number, signal?: AbortSignal): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const id = ++ids;
    signal?.addEventListener("abort", () => {
      waiting.delete(id);
      reject(signal.reason);
    }, { once: true });
    waiting.set(id, resolve);
    models.at(-1)!.send({ id, panel, question });
  });
}
