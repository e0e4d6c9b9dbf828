// Light, dark, or as the system has it.
import { signal } from "@preact/signals";

type Theme = "auto" | "light" | "dark";
const NEXT: { [theme in Theme]: Theme } = { auto: "light", light: "dark", dark: "auto" };
const stored = localStorage.getItem("lattend-theme");
export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "auto");
const system = matchMedia("(prefers-color-scheme: dark)");
export const isDark = signal(false);

function apply(): void {
  isDark.value = theme.value === "dark" || (theme.value === "auto" && system.matches);
  document.documentElement.dataset.theme = isDark.value ? "dark" : "light";
}

system.addEventListener("change", apply);
apply();

export function ThemeButton() {
  const turn = () => {
    theme.value = NEXT[theme.value];
    if (theme.value === "auto") localStorage.removeItem("lattend-theme");
    else localStorage.setItem("lattend-theme", theme.value);
    apply();
  };
  return (
    <button class="quiet" onClick={turn} title="Light, dark, or as the system has it">
      Theme: {theme.value}
    </button>
  );
}
