/** Derives readable colors from any color that a page chooses (WCAG 2.2, 1.4.3 and 1.4.11). */

/** A color in the form `#rrggbb`. */
export type Hex = string

/** Minimum contrast for normal-size text. */
export const TEXT_RATIO = 4.5
const STEPS = 40

/** `--surface` and `--raised` in `src/design/tokens.css`: the backgrounds of text in the accent color. */
export const surfaces = {
  light: ['#ffffff', '#f3f3f6'],
  dark: ['#16181e', '#20232b'],
} as const

/** Returns the contrast ratio between two colors, from 1 to 21. */
export function contrastOf(one: Hex, other: Hex): number {
  const [lighter = 0, darker = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => b - a)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Returns black or white, whichever has more contrast; the result is always readable as text. */
export function textOn(background: Hex): Hex {
  return contrastOf('#000000', background) > contrastOf('#ffffff', background) ? '#000000' : '#ffffff'
}

/**
 * Returns the color if it is readable as text on all backgrounds, or else the nearest readable color towards
 * black or white.
 */
export function readableOn(color: Hex, backgrounds: readonly Hex[]): Hex {
  const isReadable = (candidate: Hex) =>
    backgrounds.every((background) => contrastOf(candidate, background) >= TEXT_RATIO)
  const target = textOn(backgrounds[0] ?? '#ffffff')
  for (let step = 0; step <= STEPS; step++) {
    const candidate = mix(color, target, step / STEPS)
    if (isReadable(candidate)) return candidate
  }
  return target
}

/** Returns the end color of a header's gradient, which has more contrast with the text than `header`. */
export function mixHeaderEnd(header: Hex): Hex {
  return mix(header, textOn(header) === '#ffffff' ? '#000000' : '#ffffff', 0.28)
}

/** Mixes two colors; `share` 0 returns `from`, 1 returns `to`. */
export function mix(from: Hex, to: Hex, share: number): Hex {
  const parts = channelsOf(to)
  const mixed = channelsOf(from).map((part, index) => part + ((parts[index] ?? 0) - part) * share)
  return `#${mixed.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`
}

function luminanceOf(color: Hex): number {
  const [red = 0, green = 0, blue = 0] = channelsOf(color).map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function channelsOf(color: Hex): readonly number[] {
  return [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16))
}
