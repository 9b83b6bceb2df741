/** Tests that the console's form changes a value in a definition without changing the text around it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'
import { changeDefinition, readDefinition } from '../../client/agents/definition-text.ts'
import { emptiedPath, type Path, withValue } from '../../client/agents/object-paths.ts'
import { editYaml } from '../../client/agents/yaml-edit.ts'

const text = `# The greeter.
name:   "Greeter"   # shown to people

instructions: |
  Greet people.

  Be short.
# Below the instructions.
tools:
  # Looks things up.
  - lookup
  - name: weather   # free
    description: 'Reports the weather'
    inputSchema:
      type: object
behavior: { tone: warm, rules: [a, b] }
custom: kept
`

const change = (path: Path, value: unknown) => changeDefinition(text, 'yaml', path, value)

describe('changeDefinition', () => {
  test.each<[name: string, path: Path, value: unknown, from: string, to: string]>([
    ['of a quoted string', ['name'], 'Ada', '"Greeter"', '"Ada"'],
    [
      'of a multi-line string',
      ['instructions'],
      'One.\n\nTwo.\n',
      '  Greet people.\n\n  Be short.\n',
      '  One.\n\n  Two.\n',
    ],
    [
      'of a value in a list of mappings',
      ['tools', 1, 'description'],
      'Rain?',
      "'Reports the weather'",
      "'Rain?'",
    ],
    ['of an item', ['tools', 0], 'search', '- lookup', '- search'],
    ['that removes an item', ['tools', 0], undefined, '  - lookup\n', ''],
    [
      'that removes a key',
      ['tools', 1, 'description'],
      undefined,
      "    description: 'Reports the weather'\n",
      '',
    ],
    [
      'that adds a key at the end',
      ['temperature'],
      0.2,
      'custom: kept\n',
      'custom: kept\ntemperature: 0.2\n',
    ],
    [
      'that adds a key to an item',
      ['tools', 1, 'inputSchema', 'additionalProperties'],
      false,
      '      type: object\n',
      '      type: object\n      additionalProperties: false\n',
    ],
    [
      'that adds an item',
      ['tools', 2],
      { name: 'mail', description: 'Sends' },
      '      type: object\n',
      '      type: object\n  - name: mail\n    description: Sends\n',
    ],
    [
      'that adds a mapping',
      ['embed', 'origins'],
      ['https://a.example'],
      'custom: kept\n',
      'custom: kept\nembed:\n  origins:\n    - https://a.example\n',
    ],
  ])('preserves all other text in a change %s', (_name, path, value, from, to) => {
    expect(text.split(from)).toHaveLength(2)
    expect(change(path, value)).toBe(text.replace(from, () => to))
  })

  test('rewrites only the flow mapping that it changes', () => {
    const changed = change(['behavior', 'tone'], 'dry')
    expect(parse(changed)).toEqual(withValue(parse(text), ['behavior', 'tone'], 'dry'))
    expect(changed.startsWith(text.slice(0, text.indexOf('behavior')))).toBe(true)
    expect(changed.endsWith('custom: kept\n')).toBe(true)
  })

  test('does not change the text if the value is the same', () => {
    expect(change(['name'], 'Greeter')).toBe(text)
  })

  test('removes a mapping that becomes empty', () => {
    const small = 'name: A\nbehavior:\n  tone: warm\n'
    expect(changeDefinition(small, 'yaml', ['behavior', 'tone'], undefined)).toBe('name: A\n')
  })

  test('keeps an empty mapping that turns a feature on', () => {
    const small =
      'name: A\nconversations:\n  keep: 1d\n  handover:\n    button: false # none\nattachments: { maxCount: 2 }\n'
    const without = changeDefinition(small, 'yaml', ['conversations', 'handover', 'button'], undefined)
    expect(changeDefinition(without, 'yaml', ['attachments', 'maxCount'], undefined)).toBe(
      'name: A\nconversations:\n  keep: 1d\n  handover: {} # none\nattachments: {}\n',
    )
    expect(changeDefinition(small, 'yaml', ['attachments'], undefined)).not.toContain('attachments')
  })

  test('changes only the front matter or only the text below it in Markdown', () => {
    const markdown = '---\nname: A # shown\n---\n\nGreet.\n'
    expect(readDefinition(markdown, 'markdown')).toEqual({ name: 'A', instructions: 'Greet.\n' })
    expect(changeDefinition(markdown, 'markdown', ['name'], 'B')).toBe(
      '---\nname: B # shown\n---\n\nGreet.\n',
    )
    expect(changeDefinition(markdown, 'markdown', ['instructions'], 'Wave.')).toBe(
      '---\nname: A # shown\n---\n\nWave.',
    )
  })

  test('quotes a whitespace-only string that the printer would lose', () => {
    const value = [{ a: { a: ' \n' } }, '']
    expect(parse(editYaml('a: false\n', ['a'], value))).toEqual({ a: value })
  })

  test('adds the first key to an empty document', () => {
    expect(changeDefinition('', 'yaml', ['name'], 'A')).toBe('name: A\n')
    expect(changeDefinition('# Soon.\n', 'yaml', ['name'], 'A')).toBe('# Soon.\nname: A\n')
  })
})

test('readDefinition returns undefined for invalid YAML, for a list, and for Markdown without front matter', () => {
  expect(readDefinition('a: [', 'yaml')).toBeUndefined()
  expect(readDefinition('- a', 'yaml')).toBeUndefined()
  expect(readDefinition('no front matter', 'markdown')).toBeUndefined()
})

test('editYaml changes the value at any path and nothing else', () => {
  const scalar = fc.oneof(
    fc.stringMatching(/^[ -~\n\u00e4\u6f22]{0,30}$/),
    // Adding 0 converts -0 to 0 because JSON cannot represent -0.
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.boolean(),
    fc.constantFrom('', ' ', '#', '- a', 'a: b', 'null', '\n', 'a\n', ' a\n b\n\n'),
  )
  const key = fc.constantFrom('a', 'b', 'c')
  const { value: tree } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      scalar,
      fc.array(tie('value'), { minLength: 1, maxLength: 3 }),
      tie('map'),
    ),
    map: fc.dictionary(key, tie('value'), { minKeys: 1, maxKeys: 3 }),
  }))
  // Removes values that the YAML printer does not preserve.
  const map = fc
    .dictionary(key, tree, { minKeys: 1, maxKeys: 3 })
    .map((value): Record<string, unknown> => parse(stringify(value)))
  const paths = fc.array(fc.oneof(key, fc.nat(2)), { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(map, paths, fc.option(tree, { nil: undefined }), (before, path, value) => {
      fc.pre(isChangeable(before, path))
      const place = value === undefined ? emptiedPath(before, path) : path
      expect(parse(editYaml(stringify(before), place, value)) ?? {}).toEqual(
        JSON.parse(JSON.stringify(withValue(before, place, value))),
      )
    }),
    { numRuns: 300 },
  )
})

/** Returns whether the path's parent exists in the value, so that the path can be changed. */
function isChangeable(whole: unknown, path: readonly (string | number)[]): boolean {
  let held: unknown = whole
  for (const key of path) {
    if (
      typeof key === 'number'
        ? !Array.isArray(held) || key > held.length - 1
        : held === null || typeof held !== 'object' || Array.isArray(held)
    )
      return false
    held = (held as Record<string | number, unknown>)[key]
  }
  return true
}
