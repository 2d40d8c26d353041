/** Moves the focus to what the next rendering brings into sight. */
export function focusSoon(id: string): void {
  // Preact renders before the browser paints, so the element is there in the frame after that.
  requestAnimationFrame(() => requestAnimationFrame(() => document.getElementById(id)?.focus()))
}
