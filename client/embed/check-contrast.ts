/** Measures the contrast of text in the widget's colors (WCAG 2.2, 1.4.3), as the widget draws them. */

import { defaultAppearance } from '../../widget/appearance.ts'
import {
  contrastOf,
  mixHeaderEnd,
  readableOn,
  surfaces,
  TEXT_RATIO,
  textOn,
} from '../../widget/frame/contrast.ts'
import { t } from '../strings/language.ts'

/** The fields of `embed.theme` that set colors. Invalid and absent colors count as their defaults. */
export interface ThemeColors {
  readonly primaryColor?: unknown
  readonly headerStyle?: unknown
  readonly headerColor?: unknown
}

export type Scheme = 'light' | 'dark'

export interface Measurement {
  readonly part: string
  readonly scheme: Scheme
  /** The ratio of the text to its least favorable background, from 1 to 21. */
  readonly ratio: number
  /** The color that the widget uses if the chosen one is not readable. */
  readonly replacement: string | undefined
}

/** `--text` in `src/design/tokens.css`, the text color of a plain header. */
const texts = { light: '#17181d', dark: '#eceef3' } as const

/** Measures the header, the visitor's messages and the links in both color schemes. */
export function checkContrast(colors: ThemeColors): readonly Measurement[] {
  const accent = isColor(colors.primaryColor) ? colors.primaryColor : defaultAppearance.primaryColor
  return (['light', 'dark'] as const).flatMap((scheme) => [
    measureHeader(colors, accent, scheme),
    measure(t('embed.messages'), scheme, textOn(accent), [accent]),
    measureLinks(accent, scheme),
  ])
}

function measureHeader(
  { headerStyle, headerColor }: ThemeColors,
  accent: string,
  scheme: Scheme,
): Measurement {
  const color = isColor(headerColor) ? headerColor : accent
  if (headerStyle === 'solid') return measure(t('embed.header'), scheme, textOn(color), [color])
  if (headerStyle === 'gradient')
    return measure(t('embed.header'), scheme, textOn(color), [color, mixHeaderEnd(color)])
  return measure(t('embed.header'), scheme, texts[scheme], surfaces[scheme].slice(0, 1))
}

function measureLinks(accent: string, scheme: Scheme): Measurement {
  const measured = measure(t('embed.links'), scheme, accent, surfaces[scheme])
  return { ...measured, replacement: isReadable(measured) ? undefined : readableOn(accent, surfaces[scheme]) }
}

function measure(
  part: Measurement['part'],
  scheme: Scheme,
  text: string,
  backgrounds: readonly string[],
): Measurement {
  const ratio = Math.min(...backgrounds.map((background) => contrastOf(text, background)))
  return { part, scheme, ratio, replacement: undefined }
}

/** Returns whether normal-size text is readable. */
export function isReadable({ ratio }: Pick<Measurement, 'ratio'>): boolean {
  return ratio >= TEXT_RATIO
}

/** Renders a ratio such as `4.4:1`; rounds down, so that no ratio below the limit looks sufficient. */
export function renderRatio(ratio: number): string {
  return `${(Math.floor(ratio * 10) / 10).toFixed(1)}:1`
}

export function describeWarning({ part, scheme, ratio, replacement }: Measurement): string {
  const measured = t(scheme === 'light' ? 'embed.lowLight' : 'embed.lowDark', {
    part,
    ratio: renderRatio(ratio),
    needed: `${TEXT_RATIO}:1`,
  })
  return replacement === undefined
    ? measured
    : `${measured} ${t('embed.usesInstead', { color: replacement })}`
}

/** Returns whether a value is a color of `embed.theme`. */
export function isColor(value: unknown): value is string {
  return typeof value === 'string' && /^#[0-9a-f]{6}$/i.test(value)
}
