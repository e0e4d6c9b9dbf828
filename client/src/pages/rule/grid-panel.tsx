import type { RuleProps } from "./state";

export function GridPanel(_: RuleProps) {
  return null;
}
