/** What an agent definition is: every rule, and how a text that breaks it is refused. */
import { describe, expect, test } from 'vitest'
import { type DefinitionFormat, parseDefinition, renderMarkdown, toolName } from '../src/agents/definition.ts'
import { ServiceError } from '../src/errors.ts'

/** The least an agent needs: two lines, so that what a case adds starts on line 3. */
const least = 'name: Guide\ninstructions: Be kind.\n'

const complete = `# Shown in the lobby
name: Guide
instructions: |
  Be kind.

  Use find_room for rooms.
model: small # cheap
temperature: 0.2
tools:
  - open_door
  - name: find_room
    description: Finds a room
    inputSchema:
      $schema: http://json-schema.org/draft-07/schema#
      type: object
      properties: { name: { type: string, pattern: "^[A-Z]", example: A1 } }
      required: [name]
    timeout: 5
pageTools: { blocked: [reload] }
behavior: { tone: warm, language: de, rules: [No jokes] }
embed:
  origins: [https://example.com, "https://*.example.com:8443", http://localhost:3000]
  greeting: Hello!
  title: Lobby
  starters: [Where is A1?]
owner: facilities
`

function refusalOf(text: string, format: DefinitionFormat = 'yaml'): ServiceError {
  try {
    parseDefinition(text, format)
  } catch (thrown) {
    if (thrown instanceof ServiceError) return thrown
    throw thrown
  }
  throw new Error(`was accepted: ${text.slice(0, 200)}`)
}

describe('reading a definition', () => {
  test('gives every field, and the tools as they were written', () => {
    expect(parseDefinition(complete, 'yaml')).toEqual({
      name: 'Guide',
      instructions: 'Be kind.\n\nUse find_room for rooms.\n',
      model: 'small',
      temperature: 0.2,
      tools: [
        'open_door',
        {
          name: 'find_room',
          description: 'Finds a room',
          inputSchema: {
            $schema: 'http://json-schema.org/draft-07/schema#',
            type: 'object',
            properties: { name: { type: 'string', pattern: '^[A-Z]', example: 'A1' } },
            required: ['name'],
          },
          timeout: 5,
        },
      ],
      pageTools: { blocked: ['reload'] },
      behavior: { tone: 'warm', language: 'de', rules: ['No jokes'] },
      embed: {
        origins: ['https://example.com', 'https://*.example.com:8443', 'http://localhost:3000'],
        greeting: 'Hello!',
        title: 'Lobby',
        starters: ['Where is A1?'],
      },
    })
  })

  test('fills in the defaults', () => {
    expect(parseDefinition(least, 'yaml')).toStrictEqual({
      name: 'Guide',
      instructions: 'Be kind.',
      temperature: 0.7,
      tools: [],
      pageTools: 'all',
    })
  })

  test.each([
    [
      'null instead of an optional field',
      'model:\ntemperature: null\ntools: ~\npageTools:\nbehavior:\nembed:\n',
    ],
    ['keys it does not know', 'temprature: 3\nnested: { deep: [1] }\n<<: { name: B }\nconstructor: 1\n'],
    ['a comment, a marker at the end and another comment', '# done\n...\n# really\n'],
  ])('takes %s as if it were not there', (_, addition) => {
    expect(parseDefinition(least + addition, 'yaml')).toStrictEqual(parseDefinition(least, 'yaml'))
  })

  test.each([
    ['JSON', '{"name":"Guide","instructions":"Be kind."}'],
    ['a byte order mark', `\uFEFF${least}`],
    ['CRLF line ends', least.replaceAll('\n', '\r\n')],
    ['a directive and a document marker', `%YAML 1.2\n---\n${least}`],
    ['no line end at the end', least.trimEnd()],
    ['front matter', '---\nname: Guide\n---\n\nBe kind.', 'markdown'],
    ['front matter with CRLF line ends', '---\r\nname: Guide\r\n---\r\n\r\nBe kind.', 'markdown'],
    ['front matter after a byte order mark', '\uFEFF---\nname: Guide\n---\n\nBe kind.', 'markdown'],
  ] as [string, string, DefinitionFormat?][])('takes %s', (_, text, format = 'yaml') => {
    expect(parseDefinition(text, format)).toEqual(parseDefinition(least, 'yaml'))
  })

  test.each([
    [
      'null in a list entry of its own',
      'tools: [{ name: a, description: null, inputSchema: null, note: null }]',
      { tools: [{ name: 'a', note: null }] },
    ],
    [
      'null beside the other page-tool rule',
      'pageTools: { restricted: [a], blocked: null, why: x }',
      { pageTools: { restricted: ['a'] } },
    ],
    [
      'unknown keys of behavior and embed',
      'behavior: { tone: "", mood: 1 }\nembed: { colour: red }',
      { behavior: { tone: '' }, embed: {} },
    ],
    ['an empty list of page tools', 'pageTools: { restricted: [] }', { pageTools: { restricted: [] } }],
    ['both ends of the temperature', 'temperature: 2', { temperature: 2 }],
    ['yes and no as texts', 'model: no', { model: 'no' }],
    ['a name of 200 code points', `model: ${'🙂'.repeat(200)}`, { model: '🙂'.repeat(200) }],
    ['128 tools', `tools: [${names(128)}]`, { tools: names(128).split(',') }],
  ])('takes %s', (_, addition, expected) => {
    expect(parseDefinition(least + addition, 'yaml')).toMatchObject(expected)
  })

  test('takes instructions of Markdown to the last unit', () => {
    const { instructions } = parseDefinition('---\nname: A\n---\n\n\n a\r\n---\n\nb  ', 'markdown')
    expect(instructions).toBe('\n a\r\n---\n\nb  ')
  })

  test('takes 256 KiB and not one byte more', () => {
    const head = 'name: A\ninstructions: '
    const text = head + 'é'.repeat((256 * 1024 - head.length) / 2)
    expect(parseDefinition(text, 'yaml').instructions).toHaveLength(text.length - head.length)
    expect(refusalOf(`${text}a`)).toMatchObject({ reason: 'too_large', status: 413 })
  })
})

function names(count: number): string {
  return Array.from({ length: count }, (_, index) => `t${index}`).join(',')
}

/** What to add to the least definition, and what is said of it. */
const faults: [addition: string, message: string][] = [
  // Fields.
  ['temperature: 3', 'temperature: must be between 0 and 2 (line 3, column 14)'],
  ['temperature: -0.1', 'temperature: must be between 0 and 2 (line 3, column 14)'],
  ['temperature: warm', 'temperature: must be a number (line 3, column 14)'],
  ['temperature: .nan', 'temperature: must be a finite number (line 3, column 14)'],
  ['other: { deep: [-.inf] }', 'other.deep[0]: must be a finite number (line 3, column 17)'],
  ['model: 4', 'model: must be a string (line 3, column 8)'],
  ['model: "\u3000"', 'model: must not be blank (line 3, column 8)'],
  ['model: "a\\tb"', 'model: must not contain control characters (line 3, column 8)'],
  [`model: ${'x'.repeat(201)}`, 'model: must be at most 200 characters (line 3, column 8)'],
  ['model: "\\ud83d"', 'model: must be well-formed Unicode (line 3, column 8)'],
  ['other: "a\\0"', 'other: must not contain the character U+0000 (line 3, column 8)'],
  ['"\\ud83d": 1', '["\\ud83d"]: must be well-formed Unicode (line 3, column 1)'],
  ['name: Again', 'name: is a repeated key (line 3, column 1)'],
  ['other: { 1: a, "1": b }', 'other.1: is a repeated key (line 3, column 16)'],
  ['other: { "__proto__": a }', 'other.__proto__: is not allowed as a key (line 3, column 10)'],
  ['other: { : a }', 'other: must have a key before each colon (line 3, column 9)'],
  ['"a key": { b.c: .inf }', '["a key"]["b.c"]: must be a finite number (line 3, column 17)'],
  // Tools.
  ['tools: open_door', 'tools: must be a list (line 3, column 8)'],
  [`tools: [${names(129)}]`, 'tools: must be at most 128 tools (line 3, column 8)'],
  ['tools: [a, 5]', 'tools[1]: must be the name of a tool, or a mapping with its name (line 3, column 12)'],
  ['tools: [[a]]', 'tools[0]: must be the name of a tool, or a mapping with its name (line 3, column 9)'],
  ['tools:\n- description: Opens', 'tools[0].name: is required (line 4, column 3)'],
  ['tools: [open door]', 'tools[0]: must be 1 to 64 letters, digits, _ or - (line 3, column 9)'],
  [
    'tools: [postMessage_a]',
    'tools[0]: must not start with postMessage_, which marks the tools of a page (line 3, column 9)',
  ],
  ['tools: [{ name: "" }]', 'tools[0].name: must be 1 to 64 letters, digits, _ or - (line 3, column 17)'],
  [`tools: [${'x'.repeat(65)}]`, 'tools[0]: must be 1 to 64 letters, digits, _ or - (line 3, column 9)'],
  ['tools: [a, b, { name: a }]', 'tools[2].name: repeats tools[0] (line 3, column 23)'],
  ['tools: [a, a]', 'tools[1]: repeats tools[0] (line 3, column 12)'],
  ['tools: [{ name: a, description: [] }]', 'tools[0].description: must be a string (line 3, column 33)'],
  ['tools: [{ name: a, inputSchema: [] }]', 'tools[0].inputSchema: must be a mapping (line 3, column 33)'],
  // Page tools.
  [
    'pageTools: some',
    'pageTools: must be all, or a mapping with either restricted or blocked (line 3, column 12)',
  ],
  [
    'pageTools: {}',
    'pageTools: must be all, or a mapping with either restricted or blocked (line 3, column 12)',
  ],
  [
    'pageTools: { blocked: [a], restricted: [b] }',
    'pageTools: must have only one of restricted and blocked (line 3, column 12)',
  ],
  ['pageTools: { restricted: a }', 'pageTools.restricted: must be a list (line 3, column 26)'],
  ['pageTools: { blocked: [a, 5] }', 'pageTools.blocked[1]: must be a string (line 3, column 27)'],
  ['pageTools: { blocked: [" "] }', 'pageTools.blocked[0]: must not be blank (line 3, column 24)'],
  [
    'pageTools: { blocked: [postMessage_a] }',
    "pageTools.blocked[0]: must be the page's own name, without postMessage_ (line 3, column 24)",
  ],
  // Behavior and embed.
  ['behavior: warm', 'behavior: must be a mapping (line 3, column 11)'],
  ['behavior: { tone: [] }', 'behavior.tone: must be a string (line 3, column 19)'],
  ['behavior: { language: 5 }', 'behavior.language: must be a string (line 3, column 23)'],
  ['behavior:\n  rules: No jokes', 'behavior.rules: must be a list (line 4, column 10)'],
  ['behavior:\n  rules:\n  - a\n  - 5', 'behavior.rules[1]: must be a string (line 6, column 5)'],
  ['embed: []', 'embed: must be a mapping (line 3, column 8)'],
  ['embed: { greeting: " " }', 'embed.greeting: must not be blank (line 3, column 20)'],
  ['embed: { title: 5 }', 'embed.title: must be a string (line 3, column 17)'],
  ['embed: { starters: [5] }', 'embed.starters[0]: must be a string (line 3, column 21)'],
  [
    `embed: { origins: [${names(101).replaceAll('t', 'http://t')}] }`,
    'embed.origins: must be at most 100 origins (line 3, column 19)',
  ],
  ...[
    'https://a.com/',
    'a.com',
    'ftp://a.com',
    'https://a.com;x',
    'https://*',
    'https://a.*.com',
    'https://ü.com',
    'null',
    'https://u@a.com',
  ].map((origin): [string, string] => [
    `embed: { origins: ["${origin}"] }`,
    'embed.origins[0]: must be an origin: http:// or https://, a host and perhaps a port, without a path (line 3, column 20)',
  ]),
  // What YAML may not do here.
  [
    'other: &a x',
    'other: YAML anchors are not allowed; put a text that starts with & in quotes (line 3, column 8)',
  ],
  [
    'other: [x, { y: *a }]',
    'other[1].y: YAML aliases are not allowed; put a text that starts with * in quotes (line 3, column 17)',
  ],
  [
    'other:\n- a\n- !!str b',
    'other[1]: YAML tags are not allowed; put a text that starts with ! in quotes (line 5, column 3)',
  ],
  ['&a other: x', 'YAML anchors are not allowed; put a text that starts with & in quotes (line 3, column 1)'],
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
  ['...\n\uFEFF# again', 'Must not have a byte order mark inside (line 4, column 1)'],
]

/** Texts of their own. */
const brokenTexts: [text: string, message: string][] = [
  ['', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
  ['\n\n# only this', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
  ['hello', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
  ['- name: A', 'Must be one YAML mapping of keys to values (line 1, column 1)'],
  ['# a\nname: A', 'instructions: is required (line 2, column 1)'],
  ['instructions: a\nname:', 'name: is required (line 2, column 6)'],
  ['instructions: a\nname: 5', 'name: must be a string (line 2, column 7)'],
  ['instructions: a\nname: ""', 'name: must not be blank (line 2, column 7)'],
  [`instructions: a\nname: ${'é'.repeat(201)}`, 'name: must be at most 200 characters (line 2, column 7)'],
  ['name: A\ninstructions: |\n\n  \n', 'instructions: must not be blank (line 2, column 15)'],
  ['name: A\ninstructions: [a]', 'instructions: must be a string (line 2, column 15)'],
  ['name: A\ninstructions: a\0b', 'Must not contain the character U+0000 (line 2, column 16)'],
  ['name: A\ninstructions: a\ud83d', 'Must be well-formed Unicode (line 2, column 16)'],
  ['%YAML 1.3\n---\nname: A\n', 'Invalid YAML: Unsupported YAML version 1.3 (line 1, column 7)'],
]

const brokenMarkdown: [text: string, message: string][] = [
  ['name: A\n', 'Must start with front matter: a line ---, the configuration, a line --- (line 1, column 1)'],
  [
    ' ---\nname: A\n---\n\na',
    'Must start with front matter: a line ---, the configuration, a line --- (line 1, column 1)',
  ],
  ['---\nname: A\n--- \n\na', 'The front matter must be closed by a line --- (line 5, column 2)'],
  [
    '---\nname: A\n---\na',
    'The line --- that closes the front matter must be followed by an empty line (line 4, column 1)',
  ],
  [
    '---\nname: A\n---',
    'The line --- that closes the front matter must be followed by an empty line (line 3, column 4)',
  ],
  ['---\n---\n\na', 'Must be one YAML mapping of keys to values (line 1, column 4)'],
  ['---\nname: A\n---\n\n \n', 'instructions: must not be blank (line 5, column 1)'],
  [
    '---\nname: A\ninstructions: b\n---\n\na',
    'instructions: belongs after the front matter, not into it (line 3, column 15)',
  ],
  [
    '---\nname: A\ninstructions:\n---\n\na',
    'instructions: belongs after the front matter, not into it (line 3, column 14)',
  ],
  [
    '---\r\nname: A\r\ntemperature: 3\r\n---\r\n\r\na',
    'temperature: must be between 0 and 2 (line 3, column 14)',
  ],
]

/** Input schemas that are none; each starts at column 33. */
const brokenSchemas: [schema: string, message: string][] = [
  ['{ type: string }', 'type: must be object (line 3, column 41)'],
  ['{ type: [object, "null"] }', 'type: must be object (line 3, column 41)'],
  ['{ properties: 5 }', 'properties: must be object (line 3, column 47)'],
  [
    '{ properties: { a: { type: text } } }',
    'properties.a.type: must be one of array, boolean, integer, null, number, object, string (line 3, column 60)',
  ],
  ['{ properties: { "a/b": { enum: 5 } } }', 'properties["a/b"].enum: must be array (line 3, column 64)'],
  ['{ required: name }', 'required: must be array (line 3, column 45)'],
  ['{ required: [a, 5] }', 'required[1]: must be string (line 3, column 49)'],
  ['{ anyOf: [{}, { minimum: a }] }', 'anyOf[1].minimum: must be number (line 3, column 58)'],
  [
    '{ properties: { a: { items: [{}] } } }',
    'properties.a.items: must be object,boolean (line 3, column 61)',
  ],
  [
    '{ $schema: "https://json-schema.org/draft/2019-09/schema" }',
    '$schema: must be JSON Schema draft-07 or 2020-12 (line 3, column 44)',
  ],
  ['{ $schema: 7 }', '$schema: must be JSON Schema draft-07 or 2020-12 (line 3, column 44)'],
  [
    '{ $ref: "https://a.com/b.json" }',
    '$ref: must lead to a schema inside this one, as #/… does (line 3, column 41)',
  ],
  [
    '{ properties: { a: { $ref: b.json } } }',
    'properties.a.$ref: must lead to a schema inside this one, as #/… does (line 3, column 60)',
  ],
  [
    '{ items: { $ref: "#/$defs/a" } }',
    'items.$ref: must lead to a schema inside this one, as #/… does (line 3, column 50)',
  ],
  [
    '{ items: { $ref: "#/type" }, type: object }',
    'items.$ref: must lead to a schema inside this one, as #/… does (line 3, column 50)',
  ],
  [
    '{ items: { $ref: "#a" } }',
    'items.$ref: must lead to a schema inside this one, as #/… does (line 3, column 50)',
  ],
  [
    '{ items: { $ref: "#/toString" } }',
    'items.$ref: must lead to a schema inside this one, as #/… does (line 3, column 50)',
  ],
  [
    '{ items: { $ref: "#/%" } }',
    'items.$ref: must lead to a schema inside this one, as #/… does (line 3, column 50)',
  ],
  [
    '{ items: { $dynamicRef: "https://a.com" } }',
    'items.$dynamicRef: must lead to a schema inside this one, as #/… does (line 3, column 57)',
  ],
  [
    '{ properties: { a: { pattern: "(" } } }',
    'properties.a.pattern: must be a regular expression (line 3, column 63)',
  ],
  [
    '{ patternProperties: { "[": {} } }',
    'patternProperties["["]: must have a regular expression as its key (line 3, column 61)',
  ],
]

const soundSchemas = [
  '{}',
  '{ type: object, properties: {}, required: [], additionalProperties: false }',
  '{ properties: { a: { type: string, example: 5, format: secret, x-order: [1] } }, strict: true }',
  '{ $schema: "http://json-schema.org/draft-07/schema", properties: { a: { items: [{}] } } }',
  '{ $schema: "https://json-schema.org/draft/2020-12/schema", properties: { a: { prefixItems: [{}] } } }',
  '{ $defs: { "a/b c": { type: string } }, properties: { a: { $ref: "#/$defs/a~1b%20c" }, b: { $ref: "#" } } }',
  '{ $defs: { a: { $anchor: here } }, properties: { a: { $ref: "#here" } } }',
  '{ $schema: "http://json-schema.org/draft-07/schema#", definitions: { a: { $id: "#here" } }, properties: { a: { $ref: "#here" } } }',
  '{ $defs: { a: { $id: other, $defs: { b: true }, items: { $ref: "#/$defs/b" } } } }',
  '{ properties: { $ref: { type: string }, pattern: { const: "(" }, default: { $ref: "#" } } }',
  '{ properties: { a: { default: { $ref: "https://a.com", pattern: "(" }, enum: [{ pattern: "(" }] } } }',
  '{ properties: { a: { pattern: "^[\\\\w\\\\-]+$" }, b: { pattern: "(?<year>\\\\d{4})" }, c: { pattern: "\\\\p{L}" } } }',
  '{ properties: { a: { pattern: "^(a+)+$" } } }',
]

function withSchema(schema: string): string {
  return `${least}tools: [{ name: a, inputSchema: ${schema} }]`
}

describe('a broken definition is refused', () => {
  test.each([
    ...faults.map(([addition, message]) => [least + addition, message]),
    ...brokenSchemas.map(([schema, message]) => [withSchema(schema), `tools[0].inputSchema.${message}`]),
    ...brokenTexts,
  ])('%j', (text = '', message = '') => {
    expectRefusal(refusalOf(text), message)
  })

  test('whose enum holds values the schema library cannot compare', () => {
    const draft = '$schema: "http://json-schema.org/draft-07/schema"'
    const text = withSchema(`{ ${draft}, enum: [{ valueOf: 1 }, { valueOf: 2 }] }`)
    expectRefusal(
      refusalOf(text),
      'tools[0].inputSchema: must hold values that can be compared (line 3, column 33)',
    )
  })

  test.each(brokenMarkdown)('as Markdown: %j', (text, message) => {
    expectRefusal(refusalOf(text, 'markdown'), message)
  })

  test('in one short line, however long what is wrong', () => {
    const { message } = refusalOf(`${least}"${'é\\n'.repeat(60)}": { "${'🙂'.repeat(100)}": .inf }`)
    expect(message).toMatch(
      /^\["é\\n(é\\n){31}…"\]\["🙂{32}…"\]: must be a finite number \(line 3, column \d+\)$/u,
    )
  })
})

function expectRefusal(error: ServiceError, message: string): void {
  expect({ reason: error.reason, status: error.status, message: error.message }).toEqual({
    reason: 'invalid_value',
    status: 400,
    message,
  })
  expect(error.details.param).toBe(/^(?!Invalid YAML)([^A-Z][^:]*): /.exec(message)?.[1])
}

describe('the input schema of a tool', () => {
  test.each(soundSchemas)('may be %s', (schema) => {
    expect(parseDefinition(withSchema(schema), 'yaml').tools).toHaveLength(1)
  })

  test('counts towards 64 KiB of all', () => {
    const two = (bytes: number) => {
      const filler = `{"description":"${'x'.repeat(32 * 1024)}"}`
      const rest = 64 * 1024 - JSON.stringify([JSON.parse(filler), { description: '' }]).length + bytes
      return `${least}tools: [{ name: a, inputSchema: ${filler} }, { name: b, inputSchema: { description: ${'y'.repeat(rest)} } }]`
    }
    expect(parseDefinition(two(0), 'yaml').tools).toHaveLength(2)
    expectRefusal(refusalOf(two(1)), 'tools: must hold at most 64 KiB of input schemas (line 3, column 8)')
  })

  test('counts towards 2000 values of all', () => {
    const two = (values: number) =>
      `${least}tools: [{ name: a, inputSchema: { required: [${names(values - 5)}] } }, { name: b, inputSchema: { enum: [1] } }]`
    expect(parseDefinition(two(2000), 'yaml').tools).toHaveLength(2)
    expectRefusal(
      refusalOf(two(2001)),
      'tools: must hold at most 2000 values in input schemas (line 3, column 8)',
    )
  })
})

describe('256 KiB of hostile YAML is refused at its first sign', () => {
  test.each([
    [
      'anchors',
      '\n',
      '- &a b\n',
      'other[0]: YAML anchors are not allowed; put a text that starts with & in quotes (line 4, column 3)',
    ],
    [
      'brackets',
      ' ',
      '[',
      `other${'[0]'.repeat(17)}: must not be nested deeper than 16 levels (line 3, column 25)`,
    ],
    [
      'braces',
      ' ',
      '{a: ',
      `other${'.a'.repeat(16)}: must not be nested deeper than 16 levels (line 3, column 73)`,
    ],
    [
      'dashes',
      '\n',
      '- ',
      `other${'[0]'.repeat(17)}: must not be nested deeper than 16 levels (line 4, column 34)`,
    ],
    ['one-letter entries', '\n', '- a\n', 'Must have at most 100000 YAML tokens (line '],
    ['one-letter keys', ' {', 'a,', 'Must have at most 100000 YAML tokens (line '],
    ['commas', ' [', ',', 'Must have at most 100000 YAML tokens (line '],
    ['quotes', ' [', '"\n', 'Must have at most 100000 YAML tokens (line '],
    ['empty lines', '', '\n', 'Must have at most 100000 YAML tokens (line '],
    ['wrong escapes', ' "', '\\q', 'Invalid YAML: Invalid escape sequence \\q (line 3, column 9)'],
    ['documents', '\n', '---\n', 'Must be one YAML document, not several (line 4, column 1)'],
  ])('%s', (_, start, unit, message) => {
    const head = `${least}other:${start}`
    const text = head + unit.repeat((256 * 1024 - head.length) / unit.length)
    expect(refusalOf(text).message.slice(0, message.length)).toBe(message)
  })

  test('and leaves the stack traces of others alone', () => {
    const before = Error.stackTraceLimit
    Error.stackTraceLimit = before + 1
    refusalOf('a: b: c')
    expect(Error.stackTraceLimit).toBe(before + 1)
    Error.stackTraceLimit = before
  })
})

describe('a definition as Markdown', () => {
  test('keeps the configuration as it was written, without the instructions', () => {
    expect(renderMarkdown(complete, 'yaml')).toBe(
      `---\n${complete.replace(/instructions: .*(?=model)/s, '')}---\n\nBe kind.\n\nUse find_room for rooms.\n`,
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
      'name: A\n# before\ninstructions: a # beside\n  # below\n# after\nmodel: x',
      '---\nname: A\n# before\n# after\nmodel: x\n---\n\na',
    ],
    ['document markers', '%YAML 1.2\n---\nname: A\ninstructions: a\n...\n# end', '---\nname: A\n---\n\na'],
    ['a comment on the marker', '--- # top\nname: A\ninstructions: a', '---\n # top\nname: A\n---\n\na'],
    ['a byte order mark', '\uFEFFinstructions: a\nname: A', '---\nname: A\n---\n\na'],
    ['an indented mapping', '  instructions: a\n  name: A\n', '---\n  name: A\n---\n\na'],
    ['a key of its own line', '? instructions\n: a\n? name\n: A\n', '---\n? name\n: A\n---\n\na'],
    [
      'a text whose end counts',
      'name: A\nx: |+\n  b\n\ninstructions: |\n  a\n\n\nmodel: m\n',
      '---\nname: A\nx: |+\n  b\n\nmodel: m\n---\n\na\n',
    ],
  ])('renders %s', (_, text, markdown) => {
    expect(renderMarkdown(text, 'yaml')).toBe(markdown)
    expect(parseDefinition(markdown, 'markdown')).toEqual(parseDefinition(text, 'yaml'))
  })

  test('that was posted as Markdown is that text', () => {
    const text = '---\r\nname: A # x\n---\n\n a\n---\n\n'
    expect(renderMarkdown(text, 'markdown')).toBe(text)
  })
})

test('a tool has one name, however it was written', () => {
  expect([toolName('a'), toolName({ name: 'b', description: 'c' })]).toEqual(['a', 'b'])
})
