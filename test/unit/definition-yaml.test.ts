/** Tests which YAML features a definition must not use, and that hostile YAML is rejected quickly. */
import { describe, expect, test } from 'vitest'
import { definitionErrorOf, expectDefinitionError, minimalDefinition } from '../support/definition.ts'

/** Lines that make the minimal definition invalid, each with its error. */
const invalidAdditions: [addition: string, message: string][] = [
  ['other: &a x', 'other: YAML anchors are not allowed; quote text that starts with & (line 3, column 8)'],
  [
    'other: [x, { y: *a }]',
    'other[1].y: YAML aliases are not allowed; quote text that starts with * (line 3, column 17)',
  ],
  [
    'other:\n- a\n- !!str b',
    'other[1]: YAML tags are not allowed; quote text that starts with ! (line 5, column 3)',
  ],
  ['&a other: x', 'YAML anchors are not allowed; quote text that starts with & (line 3, column 1)'],
  [
    `a: ${'['.repeat(16)}${']'.repeat(16)}`,
    `a${'[0]'.repeat(15)}: must not be nested deeper than 16 levels (line 3, column 19)`,
  ],
  [
    `a: ${'[b: '.repeat(8)}x${']'.repeat(8)}`,
    `a${'[0].b'.repeat(7)}[0]: must not be nested deeper than 16 levels (line 3, column 33)`,
  ],
  ['--- \nname: B', 'Must be one YAML document, not several (line 3, column 1)'],
  ['...\n%YAML 1.3\n---\n', 'Must be one YAML document, not several (line 5, column 1)'],
  ['? [a]\n: b', 'Invalid YAML: a key must be plain text (line 3, column 3)'],
  ['other: a: b', 'Invalid YAML: Nested mappings are not allowed in compact mappings (line 3, column 8)'],
  ['other: "a', 'Invalid YAML: Missing closing "quote (line 4, column 1)'],
  ['\tother: a', 'Invalid YAML: Tabs are not allowed as indentation (line 3, column 1)'],
  ['other: @a', 'Invalid YAML: Plain value cannot start with reserved character @ (line 3, column 8)'],
  ['other: }', 'Invalid YAML: Unexpected flow-map-end token in YAML stream (line 3, column 8)'],
  ['...\n\uFEFF# again', 'Must not contain a byte order mark (line 4, column 1)'],
]

/** Complete invalid definitions, each with its error. */
const invalidTexts: [text: string, message: string][] = [
  ['', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
  ['\n\n# only this', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
  ['hello', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
  ['- name: A', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
  ['name: A\ninstructions: a\0b', 'Must not contain the character U+0000 (line 2, column 16)'],
  ['name: A\ninstructions: a\ud83d', 'Must be well-formed Unicode (line 2, column 16)'],
  ['%YAML 1.3\n---\nname: A\n', 'Invalid YAML: Unsupported YAML version 1.3 (line 1, column 7)'],
]

describe('an invalid YAML definition', () => {
  test.each([
    ...invalidAdditions.map(([addition, message]) => [minimalDefinition + addition, message]),
    ...invalidTexts,
  ])('is rejected with an error that contains the position: %j', (text = '', message = '') => {
    expectDefinitionError(definitionErrorOf(text), message)
  })
})

describe('invalid YAML', () => {
  test.each([
    [
      'anchor',
      '\n',
      '- &a b\n',
      'other[0]: YAML anchors are not allowed; quote text that starts with & (line 4, column 3)',
    ],
    [
      'bracket over the limit',
      ' ',
      '[',
      `other${'[0]'.repeat(17)}: must not be nested deeper than 16 levels (line 3, column 25)`,
    ],
    [
      'brace over the limit',
      ' ',
      '{a: ',
      `other${'.a'.repeat(16)}: must not be nested deeper than 16 levels (line 3, column 73)`,
    ],
    [
      'dash over the limit',
      '\n',
      '- ',
      `other${'[0]'.repeat(17)}: must not be nested deeper than 16 levels (line 4, column 34)`,
    ],
    ['one-letter entry over the limit', '\n', '- a\n', 'Must have at most 100000 YAML tokens (line '],
    ['one-letter key over the limit', ' {', 'a,', 'Must have at most 100000 YAML tokens (line '],
    ['comma over the limit', ' [', ',', 'Must have at most 100000 YAML tokens (line '],
    ['quote over the limit', ' [', '"\n', 'Must have at most 100000 YAML tokens (line '],
    ['empty line over the limit', '', '\n', 'Must have at most 100000 YAML tokens (line '],
    ['invalid escape', ' "', '\\q', 'Invalid YAML: Invalid escape sequence \\q (line 3, column 9)'],
    ['second document', '\n', '---\n', 'Must be one YAML document, not several (line 4, column 1)'],
  ])('of 256 KiB is rejected at the first %s', (_, start, unit, message) => {
    const head = `${minimalDefinition}other:${start}`
    const text = head + unit.repeat((256 * 1024 - head.length) / unit.length)
    expect(definitionErrorOf(text).message.slice(0, message.length)).toBe(message)
  })

  test('does not change Error.stackTraceLimit', () => {
    const before = Error.stackTraceLimit
    Error.stackTraceLimit = before + 1
    definitionErrorOf('a: b: c')
    expect(Error.stackTraceLimit).toBe(before + 1)
    Error.stackTraceLimit = before
  })
})
