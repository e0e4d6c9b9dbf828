import type { RuleProps } from "./state";

export function CostPanel(_: RuleProps) {
  return null;
}
