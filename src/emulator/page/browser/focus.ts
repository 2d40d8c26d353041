/** Moves the focus to what the next rendering brings into sight. */
export function focusSoon(id: string): void {
  // Preact renders before the browser paints; the frame after that has it.
  requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(id)?.focus()))
}
