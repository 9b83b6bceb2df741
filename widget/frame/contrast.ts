/** Colors that can be read on one another, whatever color a page chooses. See WCAG 2.2, 1.4.3 and 1.4.11. */

/** `#rrggbb`. */
export type Hex = string

/** For text of ordinary size. */
const TEXT_RATIO = 4.5
const STEPS = 40

/** How far two colors stand apart, 1 to 21. */
export function contrastOf(one: Hex, other: Hex): number {
  const [lighter = 0, darker = 0] = [luminanceOf(one), luminanceOf(other)].sort((a, b) => b - a)
  return (lighter + 0.05) / (darker + 0.05)
}

/** Black or white, whichever stands out more: always enough for text. */
export function textOn(background: Hex): Hex {
  return contrastOf('#000000', background) > contrastOf('#ffffff', background) ? '#000000' : '#ffffff'
}

/** The color itself where it can be read as text on all of these, else the nearest one towards black or white that can. */
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

/** So much of the way from one color to the other. */
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
