/** Sets the document's appearance, language and direction. */
import { type AgentTheme, type Appearance, defaultAppearance } from '../appearance.ts'
import type { FrameOptions } from '../options.ts'
import { isRecord } from '../values.ts'
import type { Hex } from './contrast.ts'
import { mix, mixHeaderEnd, readableOn, surfaces, textOn } from './contrast.ts'
import type { Language } from './strings/strings.ts'

type Scheme = 'light' | 'dark'

export interface Theme {
  readonly scheme: 'light' | 'dark' | 'auto'
  readonly accent: Hex
  readonly headerStyle: NonNullable<Appearance['headerStyle']>
  readonly header: Hex
  readonly font: NonNullable<Appearance['font']>
  readonly radius: number
  readonly density: NonNullable<Appearance['density']>
  readonly avatar: string | undefined
  readonly logo: string | undefined
}

/** Reads the agent's theme, which the server writes into the document. */
export function readAgentTheme(root: HTMLElement): AgentTheme {
  try {
    const theme: unknown = JSON.parse(root.dataset.agentTheme ?? '{}')
    return isRecord(theme) ? theme : {}
  } catch {
    return {}
  }
}

/** Returns the theme. The page's options override the agent's theme, which overrides the defaults. */
export function resolveTheme(options: FrameOptions, agentTheme: AgentTheme): Theme {
  const { colorScheme, ...agent } = agentTheme
  const chosen = { ...defaultAppearance, ...agent, ...withoutAbsent(options) }
  const accent = toHex(chosen.primaryColor) ?? toHex(agent.primaryColor) ?? defaultAppearance.primaryColor
  return {
    scheme: options.theme ?? colorScheme ?? 'auto',
    accent,
    headerStyle: chosen.headerStyle,
    header: toHex(chosen.headerColor) ?? toHex(agent.headerColor) ?? accent,
    font: chosen.font,
    radius: chosen.radius,
    density: chosen.density,
    // An empty string in the page's options removes the agent's image.
    avatar: (options.avatar ?? agent.avatar) || undefined,
    logo: (options.logo ?? agent.logo) || undefined,
  }
}

/**
 * Applies the theme now and whenever the system's color scheme changes; returns a function that stops this.
 */
export function applyTheme(root: HTMLElement, theme: Theme): () => void {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const { scheme, headerStyle, font, density, radius, avatar } = theme
  root.dataset.header = headerStyle
  root.dataset.font = font
  root.dataset.density = density
  root.toggleAttribute('data-avatar', avatar !== undefined)
  root.style.setProperty('--corner', `${radius}px`)
  root.style.setProperty('--avatar', avatar === undefined ? 'none' : toCssUrl(avatar))
  const set = () => setColors(root, theme, scheme === 'auto' ? (dark.matches ? 'dark' : 'light') : scheme)
  set()
  dark.addEventListener('change', set)
  return () => dark.removeEventListener('change', set)
}

export function applyLanguage(root: HTMLElement, { tag, direction }: Language, title: string): void {
  root.lang = tag
  root.dir = direction
  document.title = title
}

function setColors(root: HTMLElement, { accent, header }: Theme, scheme: Scheme): void {
  const [surface] = surfaces[scheme]
  root.dataset.theme = scheme
  const colors = {
    '--accent': accent,
    '--accent-hover': mix(accent, textOn(accent), 0.12),
    '--on-accent': textOn(accent),
    '--accent-text': readableOn(accent, surfaces[scheme]),
    '--accent-soft': mix(surface, accent, scheme === 'light' ? 0.1 : 0.2),
    '--header': header,
    '--header-end': mixHeaderEnd(header),
    '--on-header': textOn(header),
  }
  for (const [name, value] of Object.entries(colors)) root.style.setProperty(name, value)
}

/** Removes fields without a value, so that they do not replace defaults. */
function withoutAbsent(options: FrameOptions): Partial<FrameOptions> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
}

function toCssUrl(url: string): string {
  return `url("${url.replaceAll(/["\\\n\r\f]/g, (character) => encodeURIComponent(character))}")`
}

/** Returns `#rrggbb` for an opaque CSS color, or undefined for anything else, such as `inherit`. */
export function toHex(color: string | undefined): Hex | undefined {
  if (color === undefined || !CSS.supports('color', color)) return undefined
  const canvas = document.createElement('canvas')
  canvas.width = canvas.height = 1
  const context = canvas.getContext('2d', { willReadFrequently: true })
  if (context === null) return undefined
  // A canvas ignores values that depend on other colors, such as `inherit`, `var(--x)` or `env(x)`.
  context.fillStyle = 'transparent'
  if (!/current/i.test(color)) context.fillStyle = color
  context.fillRect(0, 0, 1, 1)
  const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data
  if (alpha !== 255) return undefined
  return `#${[red, green, blue].map((part = 0) => part.toString(16).padStart(2, '0')).join('')}`
}
