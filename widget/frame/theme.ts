/** Sets the document's colors, language and direction. */
import { defaultOptions, type FrameOptions } from '../options.ts'
import type { Hex } from './contrast.ts'
import { mix, readableOn, textOn } from './contrast.ts'
import type { Language } from './strings/strings.ts'

type Theme = 'light' | 'dark'

/** The backgrounds in `styles.css` on which text has the accent color. */
const surfaces = {
  light: ['#ffffff', '#f4f5f8'],
  dark: ['#17191f', '#22252d'],
} as const

/** Sets the colors now and whenever the system's color scheme changes; returns a function that stops this. */
export function applyTheme(root: HTMLElement, { theme, primaryColor }: FrameOptions): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const accent = accentOf(primaryColor)
  const set = () => setColors(root, accent, theme === 'auto' ? (dark.matches ? 'dark' : 'light') : theme)
  set()
  dark.addEventListener('change', set)
  return () => dark.removeEventListener('change', set)
}

/** Sets the document's language, direction and title. */
export function applyLanguage(root: HTMLElement, { tag, direction }: Language, title: string): void {
  root.lang = tag
  root.dir = direction
  document.title = title
}

function setColors(root: HTMLElement, accent: string, theme: Theme): void {
  const [surface] = surfaces[theme]
  root.dataset.theme = theme
  const colors = {
    '--accent': accent,
    '--accent-hover': mix(accent, textOn(accent), 0.12),
    '--on-accent': textOn(accent),
    '--accent-text': readableOn(accent, surfaces[theme]),
    '--accent-soft': mix(surface, accent, theme === 'light' ? 0.1 : 0.2),
  }
  for (const [name, value] of Object.entries(colors)) root.style.setProperty(name, value)
}

/** Returns the page's color as `#rrggbb`, or the default if it is not an opaque color. */
export function accentOf(primaryColor: string): Hex {
  return toHex(primaryColor) ?? defaultOptions.primaryColor
}

/** Returns `#rrggbb` for an opaque CSS color, or undefined for anything else, such as `inherit`. */
export function toHex(color: string): Hex | undefined {
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 1
  const context = canvas.getContext('2d', { willReadFrequently: true })
  if (context === null || !CSS.supports('color', color)) return undefined
  // A canvas ignores values that depend on other colors, such as `inherit`, `var(--x)` or `env(x)`.
  context.fillStyle = 'transparent'
  if (!/current/i.test(color)) context.fillStyle = color
  context.fillRect(0, 0, 1, 1)
  const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data
  if (alpha !== 255) return undefined
  return `#${[red, green, blue].map((part = 0) => part.toString(16).padStart(2, '0')).join('')}`
}
