/** Tests the contrast that the console's theme editor measures and reports. */
import { describe, expect, test } from 'vitest'
import {
  checkContrast,
  describeWarning,
  isReadable,
  renderRatio,
  type ThemeColors,
} from '../../client/embed/check-contrast.ts'

const ratiosOf = (colors: ThemeColors) =>
  Object.fromEntries(
    checkContrast(colors).map(({ part, scheme, ratio }) => [`${part} ${scheme}`, renderRatio(ratio)]),
  )

const warningsOf = (colors: ThemeColors) =>
  checkContrast(colors)
    .filter((one) => !isReadable(one))
    .map(describeWarning)

describe('checkContrast', () => {
  test('measures white text on a dark primary color, and links in that color, in both schemes', () => {
    expect(ratiosOf({ primaryColor: '#0000ff', headerStyle: 'solid' })).toEqual({
      'Header light': '8.5:1',
      'Header dark': '8.5:1',
      'Visitor’s messages light': '8.5:1',
      'Visitor’s messages dark': '8.5:1',
      'Links light': '7.7:1',
      'Links dark': '1.8:1',
    })
  })

  test('warns that yellow links have too little contrast, and names the color that the widget uses instead', () => {
    const [first, ...others] = warningsOf({ primaryColor: '#facc15' })
    expect(first).toMatch(
      /^Links: your color has a contrast of 1\.3:1 in the light scheme\. Text needs at least 4\.5:1\. The widget uses #[0-9a-f]{6} there instead\.$/,
    )
    expect(others).toEqual([])
  })

  test.each(['#777777', '#000000', '#ffffff', '#ff0000', '#00ffff'])(
    'reports readable text on the color %s, because the widget selects black or white',
    (color) => {
      for (const headerStyle of ['plain', 'solid', 'gradient']) {
        const found = checkContrast({ primaryColor: color, headerStyle, headerColor: color })
        expect(found.filter((one) => one.part !== 'Links' && !isReadable(one))).toEqual([])
      }
    },
  )

  test('measures the header color instead of the accent color in a solid header', () => {
    const { 'Header light': header, 'Visitor’s messages light': message } = ratiosOf({
      primaryColor: '#000000',
      headerStyle: 'solid',
      headerColor: '#777777',
    })
    expect([header, message]).toEqual(['4.6:1', '21.0:1'])
  })

  test('uses the default color instead of an incomplete one', () => {
    expect(ratiosOf({ primaryColor: '#4f' })).toEqual(ratiosOf({ primaryColor: '#4f46e5' }))
  })

  test('rounds ratios down, so that 4.49 does not look sufficient', () => {
    expect([renderRatio(4.49), isReadable({ ratio: 4.49 }), isReadable({ ratio: 4.5 })]).toEqual([
      '4.4:1',
      false,
      true,
    ])
  })
})
