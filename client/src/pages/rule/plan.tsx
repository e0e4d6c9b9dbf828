import type { RuleProps } from "./state";

export function PlanPanel(_: RuleProps) {
  return null;
}
