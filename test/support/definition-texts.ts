/** Generates valid and invalid agent definitions for property tests. */
import fc from 'fast-check'
import { stringify } from 'yaml'

/** Generates strings that are hard to write as YAML, such as `null`, markup and trailing white space. */
const awkwardText = fc.oneof(
  fc.constantFrom(
    'no',
    '007',
    '1e3',
    'null',
    '~',
    '---',
    'a\n---\n\nb',
    '---\n\n',
    '- a',
    'a: b',
    '# a',
    'a #b',
    '"a',
    "it's",
    ' a',
    'a ',
    'a\n',
    'a\n\n\n',
    '\n\na',
    '\n',
    '  \n a\n  b\n',
    'a\r\nb\r\n',
    'a\rb',
    '\ta\tb',
    'a\u2028b\u0085c\u00a0',
    'ünï 漢字 👩‍👩‍👧 \u{1F600}',
    '\ufeffa',
    '%a',
    '@a',
    '*a',
    '&a',
    '!a',
    '{a',
    'a]',
    '...',
    'a\u0007\u001b',
    'a'.repeat(300),
    'long words '.repeat(40),
  ),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.string({
    unit: fc.constantFrom('a', ' ', '\n', '\t', '\r\n', '#', ':', '-', '"', "'", '|', '\\'),
    maxLength: 20,
  }),
)
const wellFormed = (text: string) => text.isWellFormed() && !text.includes('\0')
const freeText = awkwardText.filter(wellFormed)
const instructions = freeText.filter((text) => text.trim() !== '')
const label = instructions.filter((text) => !/\p{Cc}/u.test(text) && [...text].length <= 200)
const json = fc.jsonValue({ maxDepth: 3, noUnicodeString: false }).filter((value) => {
  const text = JSON.stringify(value)
  return !text.includes('__proto__') && !text.includes('\\u0000') && !text.includes('\\ud')
})

const toolName = fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/).filter((name) => !name.startsWith('postMessage_'))
const inputSchema = fc
  .dictionary(
    fc.stringMatching(/^[a-z]{1,8}$/),
    fc.constantFrom({ type: 'string' }, { type: ['null', 'integer'] }, {}),
  )
  .map((properties) => ({ type: 'object', properties, required: Object.keys(properties), example: null }))
const tool = fc.oneof(
  toolName,
  fc.record({ name: toolName, description: freeText, inputSchema, note: json }, { requiredKeys: ['name'] }),
)
const nameOf = (entry: string | { name: string }) => (typeof entry === 'string' ? entry : entry.name)
const pageToolName = label.filter((name) => !name.startsWith('postMessage_'))

/** Generates definitions as JavaScript values, including unknown keys. */
export const definition = fc
  .record(
    {
      name: label,
      instructions,
      model: label,
      temperature: fc.double({ min: 0, max: 2, noNaN: true }),
      tools: fc.uniqueArray(tool, { maxLength: 4, selector: nameOf }),
      pageTools: fc.oneof(
        fc.constant('all' as const),
        fc.record({ restricted: fc.array(pageToolName, { maxLength: 3 }) }),
        fc.record({ blocked: fc.array(pageToolName, { maxLength: 3 }) }),
      ),
      behavior: fc.record(
        { tone: freeText, language: freeText, rules: fc.array(freeText, { maxLength: 3 }) },
        { requiredKeys: [] },
      ),
      embed: fc.record(
        {
          origins: fc.constant(['https://*.example.com:8443']),
          greeting: instructions,
          title: label,
          starters: fc.array(instructions, { maxLength: 3 }),
        },
        { requiredKeys: [] },
      ),
      unknown: json,
      '1.0': json,
      'a: b': json,
    },
    { requiredKeys: ['name', 'instructions'] },
    // Copies the objects, because some generated ones have no prototype.
  )
  .map((value) => structuredClone(value))
export type Definition = typeof definition extends fc.Arbitrary<infer Value> ? Value : never

/** Generates functions that write a value as YAML in different styles. */
export const style = fc.oneof(
  fc.constant((value: object) => JSON.stringify(value)),
  fc.constant((value: object) => JSON.stringify(value, null, 2)),
  fc
    .record({
      lineWidth: fc.constantFrom(0, 20, 80),
      indent: fc.constantFrom(1, 2, 4),
      defaultStringType: fc.constantFrom(
        'PLAIN',
        'QUOTE_SINGLE',
        'QUOTE_DOUBLE',
        'BLOCK_LITERAL',
        'BLOCK_FOLDED',
      ),
      collectionStyle: fc.constantFrom('any', 'flow'),
    })
    .map((options) => (value: object) => stringify(value, { ...options, aliasDuplicateObjects: false })),
)

/** Generates a mapping entry as a person might write it. */
const entryText = fc
  .record({
    key: fc.constantFrom('a', '"b c"', '1', 'c', 'd', 'e'),
    value: fc.constantFrom(
      'plain',
      'plain # comment',
      '"quoted" # comment',
      "'single\n\n    lines'",
      '"double\\\n    \\n  lines"',
      'plain\n  lines\n\n  more',
      '|\n  text\n  text',
      '|\n  text\n\n\n',
      '|+\n  text\n\n',
      '|+\n   text',
      '|-\n text\n   text\n',
      '|1\n  text\n #text',
      '>\n  text\n\n   text\n\n',
      '>+\n\n  text\n  ',
      '\n  # comment\n  - 1\n  - |+\n   text\n',
      '\n- 1\n- [a,\n  b]\n',
      '\n  f: |+\n    text\n\n  g: 1 # comment',
      '[a, {b: c}, # comment\n  "d"]',
      '{f: ,\n  g}',
      '',
      ' # comment',
      'null',
      '-0',
    ),
    isExplicit: fc.boolean(),
  })
  .map(({ key, value, isExplicit }) => (isExplicit ? `? ${key}\n: ${value}` : `${key}: ${value}`))
/** Generates blank lines and comments between two entries. */
const trivia = fc.array(
  fc.constantFrom(
    '',
    '',
    ' ',
    '    ',
    '# comment',
    ' # comment',
    '  # comment',
    '      # comment',
    '\t',
    '\t# comment',
    '# ---',
  ),
  { maxLength: 3 },
)
const instructionsText = fc.constantFrom(
  'instructions: be kind',
  'instructions: be kind # comment',
  '"instructions": "be\\n---\\n\\nkind "',
  "'instructions': 'be\n  kind'",
  'instructions: be\n  kind\n\n  always',
  'instructions: |\n  be\n   kind\n\n  # no comment\n',
  'instructions: |+\n  be kind\n\n\n',
  'instructions: |2-\n   be kind\n  # no comment',
  'instructions: >\n  be\n  kind\n',
  '? instructions\n: be kind',
  '?\n  instructions\n: |\n  be kind',
  '? |-\n  instructions\n: be kind',
)
/** Generates documents as people might write them; most are valid. */
export const handWritten = fc
  .record({
    entries: fc.uniqueArray(entryText, {
      maxLength: 3,
      selector: (text) => text.replace('? ', '').slice(0, 3),
    }),
    instructionsText,
    order: fc.array(fc.nat({ max: 9 }), { minLength: 5, maxLength: 5 }),
    gaps: fc.array(trivia, { minLength: 6, maxLength: 6 }),
    indent: fc.constantFrom('', '', '  '),
    head: fc.constantFrom(
      '',
      '',
      '\ufeff',
      '---\n',
      '--- # comment\n',
      '# comment\n---\n',
      '%YAML 1.2\n---\n',
      '\n\n# comment\n',
    ),
    tail: fc.constantFrom('', '\n', '\n\n\n', '\n...\n', '\n... # comment\n', '\n# comment', '\n   '),
    lineEnd: fc.constantFrom('\n', '\n', '\r\n'),
  })
  .map(({ entries, instructionsText, order, gaps, indent, head, tail, lineEnd }) => {
    const sorted = [...entries, instructionsText, 'name: A']
      .map((entry, index) => ({ entry, rank: order[index] ?? 0 }))
      .sort((left, right) => left.rank - right.rank)
    const lines = sorted
      .flatMap(({ entry }, index) => [...(gaps[index] ?? []), entry])
      .join('\n')
      .split('\n')
    const body = lines.map((line) => (line === '' ? line : indent + line)).join('\n')
    return (head + body + tail).replaceAll('\n', lineEnd)
  })

const slip = fc.constantFrom(
  ...[
    'a',
    ' ',
    '\n',
    '\t',
    '\r\n',
    '\r',
    '#',
    ': ',
    ':',
    '- ',
    '-',
    '"',
    "'",
    '|',
    '>',
    '[',
    ']',
    '{',
    '}',
    ',',
    '? ',
    '\\',
  ],
  ...[
    '---',
    '...',
    '\n---\n',
    '%',
    '@',
    '&',
    '*',
    '!',
    '\ufeff',
    '\u0085',
    '\u2028',
    '\0',
    '\ud800',
    '.nan',
    '<<: ',
  ],
  ...['__proto__: 1\n', 'name: B', 'tools: [a]\n', 'temperature: 9', 'constructor'],
)

/** Generates documents with typing errors, and random text. */
export const slipped = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        handWritten,
        fc.array(fc.record({ at: fc.nat({ max: 300 }), dropped: fc.nat({ max: 2 }), slip }), {
          maxLength: 4,
        }),
      )
      .map(([text, slips]) =>
        slips.reduce(
          (slipped, { at, dropped, slip }) => slipped.slice(0, at) + slip + slipped.slice(at + dropped),
          text,
        ),
      ),
  },
  { weight: 1, arbitrary: fc.array(slip, { maxLength: 20 }).map((pieces) => pieces.join('')) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
)
