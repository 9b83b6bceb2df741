/** Tests which themes an agent definition accepts, and the errors for invalid ones. */
import { describe, expect, test } from 'vitest'
import { definitionSchema, parseDefinition } from '../../src/agents/definition.ts'
import { definitionErrorOf, expectDefinitionError, minimalDefinition } from '../support/definition.ts'

const withTheme = (theme: string) => `${minimalDefinition}embed: { theme: ${theme} }`
/** The column of a value in a theme with one field of this name. */
const columnOf = (field: string) => 'embed: { theme: { '.length + field.length + 3

describe('embed.theme', () => {
  test.each([
    ['an empty theme', '{}', {}],
    ['null as an absent field', '{ avatar: null, radius: ~ }', {}],
    [
      'the smallest numbers',
      '{ radius: 0, teaserDelay: 0, width: 280 }',
      { radius: 0, teaserDelay: 0, width: 280 },
    ],
    ['a color in upper case', '{ headerColor: "#0F766E" }', { headerColor: '#0F766E' }],
    [
      'an image with a port',
      '{ avatar: "https://a.example:8443/b.png?c=1" }',
      { avatar: 'https://a.example:8443/b.png?c=1' },
    ],
    [
      'an image in the definition',
      '{ logo: "data:image/svg+xml;base64,PHN2Zy8+" }',
      { logo: 'data:image/svg+xml;base64,PHN2Zy8+' },
    ],
  ])('accepts %s', (_, theme, expected) => {
    expect(parseDefinition(withTheme(theme), 'yaml').embed?.theme).toEqual(expected)
  })

  const color = 'must be a color such as "#4f46e5": # and 6 hexadecimal digits, in quotes'
  const image = 'must be the https:// URL of an image, or a data: URL of a PNG, JPEG, WebP, GIF or SVG image'
  const imageLength = 'must have at most 2048 characters, or 32768 as a data: URL'
  test.each([
    ['colorScheme', 'black', 'must be `light`, `dark` or `auto`'],
    ['primaryColor', 'teal', color],
    ['headerColor', '"#fff"', color],
    ['avatar', 'http://a.example/b.png', image],
    ['avatar', '"https://a.example;script-src/b.png"', image],
    ['avatar', '"data:text/html;base64,aGk="', image],
    ['avatar', '"https://a..example:99999/b.png"', image],
    ['logo', 5, image],
    ['logo', `"https://a.example/${'x'.repeat(2048)}"`, imageLength],
    ['logo', `"data:image/png;base64,${'A'.repeat(32_768)}"`, imageLength],
    ['headerStyle', 'striped', 'must be `plain`, `solid` or `gradient`'],
    ['launcherIcon', 'cat', 'must be `chat`, `question`, `sparkles`, `wave` or `avatar`'],
    ['launcherLabel', `"${'x'.repeat(41)}"`, 'must be at most 40 characters'],
    ['launcherLabel', '"a\\nb"', 'must not contain control characters'],
    ['teaser', '" "', 'must not be blank'],
    ['teaser', 5, 'must be text'],
    ['teaserDelay', 3601, 'must be a whole number from 0 to 3600'],
    ['radius', 1.5, 'must be a whole number from 0 to 24'],
    ['width', 'wide', 'must be a whole number from 280 to 800'],
    ['height', 319, 'must be a whole number from 320 to 1200'],
  ])('rejects %s: %s', (field, value, message) => {
    const text = withTheme(`{ ${field}: ${value} }`)
    expectDefinitionError(
      definitionErrorOf(text),
      `embed.theme.${field}: ${message} (line 3, column ${columnOf(field)})`,
    )
  })

  test('rejects a field that does not exist', () => {
    expectDefinitionError(
      definitionErrorOf(withTheme('{ colour: "#ffffff" }')),
      "embed.theme: has an unknown field 'colour' (line 3, column 17)",
    )
  })

  test('is in the JSON Schema, with a description for each field', () => {
    const { embed } = definitionSchema.properties as { embed: { properties: { theme: ThemeSchema } } }
    const { properties, additionalProperties } = embed.properties.theme
    expect(additionalProperties).toBe(false)
    expect(properties.radius).toMatchObject({ type: 'integer', minimum: 0, maximum: 24 })
    for (const field of Object.values(properties)) expect(field).toHaveProperty('description')
  })
})

interface ThemeSchema {
  readonly properties: Readonly<Record<string, object>>
  readonly additionalProperties: boolean
}
