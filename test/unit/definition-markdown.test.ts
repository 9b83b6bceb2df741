/** Tests how Markdown definitions are validated, and how other definitions are rendered as Markdown. */
import { describe, expect, test } from 'vitest'
import { parseDefinition, renderMarkdown } from '../../src/agents/definition.ts'
import { definitionErrorOf, expectDefinitionError, fullDefinition } from '../support/definition.ts'

const brokenMarkdown: [text: string, message: string][] = [
  [
    'name: A\n',
    'Must start with front matter: a line with ---, the configuration, and another line with --- (line 1, column 1)',
  ],
  [
    ' ---\nname: A\n---\n\na',
    'Must start with front matter: a line with ---, the configuration, and another line with --- (line 1, column 1)',
  ],
  [
    '---\nname: A\n--- \n\na',
    'The front matter must end with a line that contains only --- (line 5, column 2)',
  ],
  [
    '---\nname: A\n---\na',
    'The line --- at the end of the front matter must be followed by an empty line (line 4, column 1)',
  ],
  [
    '---\nname: A\n---',
    'The line --- at the end of the front matter must be followed by an empty line (line 3, column 4)',
  ],
  ['---\n---\n\na', 'Must be one YAML mapping of keys to values (line 1, column 4)'],
  ['---\nname: A\n---\n\n \n', 'instructions: must not be blank (line 5, column 1)'],
  [
    '---\nname: A\ninstructions: b\n---\n\na',
    'instructions: must come after the front matter, not inside it (line 3, column 15)',
  ],
  [
    '---\nname: A\ninstructions:\n---\n\na',
    'instructions: must come after the front matter, not inside it (line 3, column 14)',
  ],
  [
    '---\r\nname: A\r\ntemperature: 3\r\n---\r\n\r\na',
    'temperature: must be between 0 and 2 (line 3, column 14)',
  ],
]

describe('an invalid Markdown definition', () => {
  test.each(brokenMarkdown)('is rejected with an error that contains the position: %j', (text, message) => {
    expectDefinitionError(definitionErrorOf(text, 'markdown'), message)
  })
})

describe('a definition rendered as Markdown', () => {
  test('contains the unchanged configuration, without the instructions, as its front matter', () => {
    expect(renderMarkdown(fullDefinition, 'yaml')).toBe(
      `---\n${fullDefinition.replace(/instructions: .*(?=model)/s, '')}---\n\nBe kind.\n\nUse find_room for rooms.\n`,
    )
  })

  test.each([
    [
      'JSON',
      '{"instructions": "a\\nb", "name": "A", "tools": []}\n',
      '---\n{"name": "A", "tools": []}\n---\n\na\nb',
    ],
    [
      'JSON with the instructions at the end',
      '{"name": "A", "instructions": "a"}',
      '---\n{"name": "A"}\n---\n\na',
    ],
    [
      'comments around the instructions',
      'name: A\n# before\ninstructions: a # inline\n  # below\n# after\nmodel: x',
      '---\nname: A\n# before\n# after\nmodel: x\n---\n\na',
    ],
    ['document markers', '%YAML 1.2\n---\nname: A\ninstructions: a\n...\n# end', '---\nname: A\n---\n\na'],
    [
      'a comment on the document marker',
      '--- # top\nname: A\ninstructions: a',
      '---\n # top\nname: A\n---\n\na',
    ],
    ['a byte order mark', '\uFEFFinstructions: a\nname: A', '---\nname: A\n---\n\na'],
    ['an indented mapping', '  instructions: a\n  name: A\n', '---\n  name: A\n---\n\na'],
    ['an explicit key', '? instructions\n: a\n? name\n: A\n', '---\n? name\n: A\n---\n\na'],
    [
      'a text with significant trailing lines',
      'name: A\nx: |+\n  b\n\ninstructions: |\n  a\n\n\nmodel: m\n',
      '---\nname: A\nx: |+\n  b\n\nmodel: m\n---\n\na\n',
    ],
  ])('may come from %s', (_, text, markdown) => {
    expect(renderMarkdown(text, 'yaml')).toBe(markdown)
    expect(parseDefinition(markdown, 'markdown')).toEqual(parseDefinition(text, 'yaml'))
  })

  test('is unchanged if it was created as Markdown', () => {
    const text = '---\r\nname: A # x\n---\n\n a\n---\n\n'
    expect(renderMarkdown(text, 'markdown')).toBe(text)
  })
})
