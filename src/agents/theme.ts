/** Defines `embed.theme` of the agent definition: the appearance of the widget. */
import { z } from 'zod'
import { orMissing } from '../lib/formats/json-schema.ts'
import { mappingOf } from '../lib/formats/mapping-schema.ts'

const MAX_IMAGE_URL = 2048
const MAX_IMAGE_DATA = 32_768
const MAX_LABEL = 40
const MAX_TEASER = 200

function oneOf<const Values extends readonly [string, ...string[]]>(values: Values) {
  const [last, ...others] = values.toReversed()
  const names = `${others
    .reverse()
    .map((value) => `\`${value}\``)
    .join(', ')} or \`${last}\``
  return z.enum(values, { error: `must be ${names}` }).optional()
}

const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`
  return z.int({ error }).min(min, error).max(max, error).optional()
}

const wrongColor = 'must be a color such as "#4f46e5": # and 6 hexadecimal digits, in quotes'
const color = () =>
  z
    .string({ error: wrongColor })
    .regex(/^#[0-9a-f]{6}$/i, wrongColor)
    .optional()

const wrongImage =
  'must be the https:// URL of an image, or a data: URL of a PNG, JPEG, WebP, GIF or SVG image'

/** Allows only hosts that cannot end a directive of the frame's Content Security Policy. */
const image = () =>
  z
    .string({ error: wrongImage })
    .regex(
      /^(?:https:\/\/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?(?:[/?][^\s]*)?|data:image\/(?:png|jpeg|webp|gif|svg\+xml);base64,[a-z0-9+/]+=*)$/i,
      wrongImage,
    )
    .refine((url) => !/^https:/i.test(url) || URL.canParse(url), wrongImage)
    .refine(
      (url) => url.length <= (url.startsWith('https:') ? MAX_IMAGE_URL : MAX_IMAGE_DATA),
      `must have at most ${MAX_IMAGE_URL} characters, or ${MAX_IMAGE_DATA} as a data: URL`,
    )
    .optional()

const line = (max: number) =>
  z
    .string({ error: orMissing('must be text') })
    .max(max, `must be at most ${max} characters`)
    .regex(/\S/, 'must not be blank')
    .regex(/^\P{Cc}*$/u, 'must not contain control characters')
    .optional()

/** The widget options on the page override these fields, except `colorScheme` (docs/widget.md). */
const themeFields = {
  colorScheme: oneOf(['light', 'dark', 'auto']).meta({
    description: 'Color scheme; `auto` uses the system setting.',
  }),
  primaryColor: color().meta({ description: 'Accent color of buttons, links and messages.' }),
  avatar: image().meta({ description: 'Image next to the title and the answers.' }),
  logo: image().meta({ description: 'Image in the header instead of the title.' }),
  headerStyle: oneOf(['plain', 'solid', 'gradient']).meta({ description: 'Background of the header.' }),
  headerColor: color().meta({
    description: 'Color of a `solid` or `gradient` header; default: the accent color.',
  }),
  launcherIcon: oneOf(['chat', 'question', 'sparkles', 'wave', 'avatar']).meta({
    description: 'Icon of the button that opens the chat.',
  }),
  launcherLabel: line(MAX_LABEL).meta({ description: 'Text next to the icon of the button.' }),
  teaser: line(MAX_TEASER).meta({
    description: 'Text of the bubble above the button while the window is closed.',
  }),
  teaserDelay: wholeNumber(0, 3600).meta({ description: 'Seconds after which the bubble appears.' }),
  font: oneOf(['inter', 'system', 'rounded', 'serif', 'mono']).meta({ description: 'Typeface of the chat.' }),
  radius: wholeNumber(0, 24).meta({ description: 'Corner radius of the window, in pixels.' }),
  density: oneOf(['comfortable', 'compact']).meta({ description: 'Size of text and spacing.' }),
  position: oneOf(['bottom-right', 'bottom-left']).meta({
    description: 'Corner of the page in which the button and the window appear.',
  }),
  width: wholeNumber(280, 800).meta({ description: 'Width of the window, in pixels.' }),
  height: wholeNumber(320, 1200).meta({ description: 'Maximum height of the window, in pixels.' }),
}

/** Rejects unknown fields, because a misspelled field would have no visible effect. */
const Theme = z.strictObject(themeFields, {
  error: (issue) =>
    issue.code === 'unrecognized_keys' ? `has an unknown field '${issue.keys[0]}'` : 'must be a mapping',
})

export const AgentTheme = mappingOf(Theme)
export type AgentTheme = z.output<typeof Theme>

/** The theme in responses; absent fields use their defaults (docs/agents.md). */
export const ThemeView = Theme.meta({
  id: 'AgentTheme',
  description: 'Appearance of the widget; contains only fields that the definition sets.',
})
