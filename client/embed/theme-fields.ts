/** Lists the fields of `embed.theme` with the controls that edit them. */
import { defaultAppearance } from '../../widget/appearance.ts'
import type { PlainKey } from '../strings/catalogue.ts'

/** The labels of the values; the default is first, and selecting it removes the field from the definition. */
export type Choices = Readonly<Record<string, PlainKey>>

interface Labelled {
  readonly field: string
  readonly label: PlainKey
  readonly about?: PlainKey
}

export type ThemeField = Labelled &
  (
    | { readonly kind: 'segments' | 'choice'; readonly choices: Choices }
    | { readonly kind: 'color'; readonly standard: string | { readonly text: PlainKey } }
    | { readonly kind: 'image'; readonly example: string }
    | { readonly kind: 'text' }
    | { readonly kind: 'number'; readonly standard: number; readonly min: number; readonly max: number }
  )

export const headerColor: ThemeField = {
  field: 'headerColor',
  kind: 'color',
  label: 'embed.headerColor',
  standard: { text: 'embed.sameAsAccent' },
}

/** The fields that determine the colors and so the contrast. */
export const colorFields: readonly ThemeField[] = [
  {
    field: 'colorScheme',
    kind: 'segments',
    label: 'embed.colorScheme',
    choices: { auto: 'embed.auto', light: 'embed.light', dark: 'embed.dark' },
  },
  {
    field: 'primaryColor',
    kind: 'color',
    label: 'embed.accentColor',
    standard: defaultAppearance.primaryColor,
  },
  {
    field: 'headerStyle',
    kind: 'segments',
    label: 'embed.header',
    choices: { plain: 'embed.plain', solid: 'embed.solid', gradient: 'embed.gradient' },
  },
]

export const brandFields: readonly ThemeField[] = [
  {
    field: 'avatar',
    kind: 'image',
    label: 'embed.avatar',
    about: 'embed.avatarHelp',
    example: 'https://www.example.com/avatar.png',
  },
  {
    field: 'logo',
    kind: 'image',
    label: 'embed.logo',
    about: 'embed.logoHelp',
    example: 'https://www.example.com/logo.svg',
  },
  {
    field: 'font',
    kind: 'choice',
    label: 'embed.typeface',
    choices: {
      inter: 'embed.inter',
      system: 'embed.system',
      rounded: 'embed.rounded',
      serif: 'embed.serif',
      mono: 'embed.mono',
    },
  },
]

export const launcherFields: readonly ThemeField[] = [
  {
    field: 'launcherIcon',
    kind: 'choice',
    label: 'embed.icon',
    choices: {
      chat: 'embed.chat',
      question: 'embed.question',
      sparkles: 'embed.sparkles',
      wave: 'embed.wave',
      avatar: 'embed.avatar',
    },
  },
  { field: 'launcherLabel', kind: 'text', label: 'embed.label' },
  { field: 'teaser', kind: 'text', label: 'embed.teaser', about: 'embed.teaserHelp' },
  {
    field: 'teaserDelay',
    kind: 'number',
    label: 'embed.teaserDelay',
    standard: defaultAppearance.teaserDelay,
    min: 0,
    max: 3600,
  },
  {
    field: 'position',
    kind: 'segments',
    label: 'embed.position',
    choices: { 'bottom-right': 'embed.right', 'bottom-left': 'embed.leftSide' },
  },
]

export const windowFields: readonly ThemeField[] = [
  {
    field: 'width',
    kind: 'number',
    label: 'embed.width',
    standard: defaultAppearance.width,
    min: 280,
    max: 800,
  },
  {
    field: 'height',
    kind: 'number',
    label: 'embed.height',
    standard: defaultAppearance.height,
    min: 320,
    max: 1200,
  },
  {
    field: 'radius',
    kind: 'number',
    label: 'embed.radius',
    standard: defaultAppearance.radius,
    min: 0,
    max: 24,
  },
  {
    field: 'density',
    kind: 'segments',
    label: 'embed.density',
    choices: { comfortable: 'embed.comfortable', compact: 'embed.compact' },
  },
]
