// The server's own description of itself (OpenAPI), as far as the page shows it.

export interface Shape {
  $ref?: string;
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Shape[];
  items?: Shape;
  prefixItems?: Shape[];
  additionalProperties?: Shape | boolean;
  properties?: { [name: string]: Shape };
  required?: string[];
  maxLength?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
}
interface Body {
  content: { "application/json"?: { schema: Shape } };
}
interface Operation {
  summary: string;
  description?: string;
  requestBody: Body;
  responses: { [status: string]: Body };
}
export interface Schema {
  info: { version: string };
  paths: { [path: string]: { post?: Operation } };
  components: { schemas: { [name: string]: Shape } };
}
export interface Entry {
  name: string;
  title: string;
  about: string;
  question: Shape;
  answer: Shape;
  picture: boolean;
}

/** Every panel, in the order of the server. */
export function entries(schema: Schema): Entry[] {
  const found: Entry[] = [];
  for (const [path, { post }] of Object.entries(schema.paths)) {
    const name = path.match(/^\/api\/(\w+)$/)?.[1];
    if (!post || !name) continue;
    found.push({
      name,
      title: post.summary,
      about: post.description ?? "",
      question: resolved(schema, bodyOf(post.requestBody)),
      answer: resolved(schema, bodyOf(post.responses["200"])),
      picture: `${path}/picture.{form}` in schema.paths,
    });
  }
  return found;
}

function bodyOf(body?: Body): Shape {
  return body?.content["application/json"]?.schema ?? {};
}

function resolved(schema: Schema, shape: Shape): Shape {
  return shape.$ref ? (schema.components.schemas[nameOf(shape.$ref)] ?? {}) : shape;
}

function nameOf(reference: string): string {
  return reference.split("/").at(-1)!;
}

/** A type in a few words: `text`, `list of Letter`, `text or null`. */
export function typeOf(shape: Shape): string {
  if (shape.$ref) return nameOf(shape.$ref);
  if (shape.const !== undefined) return JSON.stringify(shape.const);
  if (shape.enum) return shape.enum.map((one) => JSON.stringify(one)).join(" or ");
  if (shape.anyOf) return shape.anyOf.map(typeOf).join(" or ");
  if (shape.type === "array") return shape.items ? `list of ${typeOf(shape.items)}` : "list";
  if (shape.type === "object")
    return typeof shape.additionalProperties === "object" ? `${typeOf(shape.additionalProperties)} by name` : "object";
  return { string: "text", integer: "integer", number: "number", boolean: "true or false", null: "null" }[shape.type ?? ""] ?? "any";
}

/** What a value may be at most. */
export function boundsOf(shape: Shape): string {
  const { minimum, maximum, maxLength, maxItems } = shape;
  const length = maxLength ?? maxItems;
  return [
    minimum !== undefined ? `from ${minimum}` : "",
    maximum !== undefined ? `up to ${maximum}` : "",
    length !== undefined ? `at most ${length} long` : "",
  ]
    .filter(Boolean)
    .join(", ");
}
