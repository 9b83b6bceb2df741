/** Tests which agent definitions are valid, and the errors for invalid ones. */
import { describe, expect, test } from 'vitest'
import { type DefinitionFormat, parseDefinition, toolName } from '../../src/agents/definition.ts'
import {
  definitionErrorOf,
  expectDefinitionError,
  fullDefinition,
  minimalDefinition,
  toolNames,
} from '../support/definition.ts'

describe('reading a definition', () => {
  test('returns every field, with each tool as a name or an object', () => {
    expect(parseDefinition(fullDefinition, 'yaml')).toEqual({
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
        theme: { primaryColor: '#0f766e', radius: 8, launcherIcon: 'question', teaser: 'Questions?' },
      },
    })
  })

  test('returns default values for missing fields', () => {
    expect(parseDefinition(minimalDefinition, 'yaml')).toStrictEqual({
      name: 'Guide',
      instructions: 'Be kind.',
      temperature: 0.7,
      tools: [],
      pageTools: 'all',
    })
  })

  test.each([
    ['null for an optional field', 'model:\ntemperature: null\ntools: ~\npageTools:\nbehavior:\nembed:\n'],
    ['unknown keys', 'temprature: 3\nnested: { deep: [1] }\n<<: { name: B }\nconstructor: 1\n'],
    ['comments and a document end marker', '# done\n...\n# really\n'],
  ])('ignores %s', (_, addition) => {
    expect(parseDefinition(minimalDefinition + addition, 'yaml')).toStrictEqual(
      parseDefinition(minimalDefinition, 'yaml'),
    )
  })

  test.each([
    ['JSON', '{"name":"Guide","instructions":"Be kind."}'],
    ['a byte order mark', `\uFEFF${minimalDefinition}`],
    ['CRLF line endings', minimalDefinition.replaceAll('\n', '\r\n')],
    ['a directive and a document marker', `%YAML 1.2\n---\n${minimalDefinition}`],
    ['a missing trailing newline', minimalDefinition.trimEnd()],
    ['front matter', '---\nname: Guide\n---\n\nBe kind.', 'markdown'],
    ['front matter with CRLF line endings', '---\r\nname: Guide\r\n---\r\n\r\nBe kind.', 'markdown'],
    ['front matter after a byte order mark', '\uFEFF---\nname: Guide\n---\n\nBe kind.', 'markdown'],
  ] as [string, string, DefinitionFormat?][])('accepts %s', (_, text, format = 'yaml') => {
    expect(parseDefinition(text, format)).toEqual(parseDefinition(minimalDefinition, 'yaml'))
  })

  test.each([
    [
      'null in a list entry',
      'tools: [{ name: a, description: null, inputSchema: null, note: null }]',
      { tools: [{ name: 'a', note: null }] },
    ],
    [
      'null next to the other page-tool rule',
      'pageTools: { restricted: [a], blocked: null, why: x }',
      { pageTools: { restricted: ['a'] } },
    ],
    [
      'unknown keys of behavior and embed',
      'behavior: { tone: "", mood: 1 }\nembed: { colour: red }',
      { behavior: { tone: '' }, embed: {} },
    ],
    ['an empty list of page tools', 'pageTools: { restricted: [] }', { pageTools: { restricted: [] } }],
    ['the maximum temperature', 'temperature: 2', { temperature: 2 }],
    ['the word no as text', 'model: no', { model: 'no' }],
    ['a model name of 200 code points', `model: ${'🙂'.repeat(200)}`, { model: '🙂'.repeat(200) }],
    ['128 tools', `tools: [${toolNames(128)}]`, { tools: toolNames(128).split(',') }],
  ])('accepts %s', (_, addition, expected) => {
    expect(parseDefinition(minimalDefinition + addition, 'yaml')).toMatchObject(expected)
  })

  test('does not change any character of the instructions in Markdown', () => {
    const { instructions } = parseDefinition('---\nname: A\n---\n\n\n a\r\n---\n\nb  ', 'markdown')
    expect(instructions).toBe('\n a\r\n---\n\nb  ')
  })

  test('accepts text of 256 KiB and rejects longer text', () => {
    const head = 'name: A\ninstructions: '
    const text = head + 'é'.repeat((256 * 1024 - head.length) / 2)
    expect(parseDefinition(text, 'yaml').instructions).toHaveLength(text.length - head.length)
    expect(definitionErrorOf(`${text}a`)).toMatchObject({ reason: 'too_large', status: 413 })
  })
})

/** Lines that make the minimal definition invalid, each with its error. */
const invalidAdditions: [addition: string, message: string][] = [
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
  ['name: Again', 'name: occurs more than once (line 3, column 1)'],
  ['other: { 1: a, "1": b }', 'other.1: occurs more than once (line 3, column 16)'],
  ['other: { "__proto__": a }', 'other.__proto__: is not allowed as a key (line 3, column 10)'],
  ['other: { : a }', 'other: must have a key before each colon (line 3, column 9)'],
  ['"a key": { b.c: .inf }', '["a key"]["b.c"]: must be a finite number (line 3, column 17)'],
  ['tools: open_door', 'tools: must be a list (line 3, column 8)'],
  [`tools: [${toolNames(129)}]`, 'tools: must have at most 128 tools (line 3, column 8)'],
  ['tools: [a, 5]', 'tools[1]: must be a tool name, or a mapping with a name (line 3, column 12)'],
  ['tools: [[a]]', 'tools[0]: must be a tool name, or a mapping with a name (line 3, column 9)'],
  ['tools:\n- description: Opens', 'tools[0].name: is required (line 4, column 3)'],
  ['tools: [open door]', 'tools[0]: must be 1 to 64 letters, digits, _ or - (line 3, column 9)'],
  [
    'tools: [postMessage_a]',
    'tools[0]: must not start with postMessage_, which is reserved for the tools of a page (line 3, column 9)',
  ],
  ['tools: [{ name: "" }]', 'tools[0].name: must be 1 to 64 letters, digits, _ or - (line 3, column 17)'],
  [`tools: [${'x'.repeat(65)}]`, 'tools[0]: must be 1 to 64 letters, digits, _ or - (line 3, column 9)'],
  ['tools: [a, b, { name: a }]', 'tools[2].name: repeats tools[0] (line 3, column 23)'],
  ['tools: [a, a]', 'tools[1]: repeats tools[0] (line 3, column 12)'],
  ['tools: [{ name: a, description: [] }]', 'tools[0].description: must be a string (line 3, column 33)'],
  ['tools: [{ name: a, inputSchema: [] }]', 'tools[0].inputSchema: must be a mapping (line 3, column 33)'],
  [
    'pageTools: some',
    'pageTools: must be `all`, or a mapping with `restricted` or `blocked` (line 3, column 12)',
  ],
  [
    'pageTools: {}',
    'pageTools: must be `all`, or a mapping with `restricted` or `blocked` (line 3, column 12)',
  ],
  [
    'pageTools: { blocked: [a], restricted: [b] }',
    'pageTools: must not have both restricted and blocked (line 3, column 12)',
  ],
  ['pageTools: { restricted: a }', 'pageTools.restricted: must be a list (line 3, column 26)'],
  ['pageTools: { blocked: [a, 5] }', 'pageTools.blocked[1]: must be a string (line 3, column 27)'],
  ['pageTools: { blocked: [" "] }', 'pageTools.blocked[0]: must not be blank (line 3, column 24)'],
  [
    'pageTools: { blocked: [postMessage_a] }',
    'pageTools.blocked[0]: must be the tool name that the page uses, without postMessage_ (line 3, column 24)',
  ],
  ['behavior: warm', 'behavior: must be a mapping (line 3, column 11)'],
  ['behavior: { tone: [] }', 'behavior.tone: must be a string (line 3, column 19)'],
  ['behavior: { language: 5 }', 'behavior.language: must be a string (line 3, column 23)'],
  ['behavior:\n  rules: No jokes', 'behavior.rules: must be a list (line 4, column 10)'],
  ['behavior:\n  rules:\n  - a\n  - 5', 'behavior.rules[1]: must be a string (line 6, column 5)'],
  ['embed: []', 'embed: must be a mapping (line 3, column 8)'],
  ['embed: { greeting: " " }', 'embed.greeting: must not be blank (line 3, column 20)'],
  [
    'embed: { disclaimer: soon }',
    'embed.disclaimer: must be `true`, `false`, or a mapping with `text` and `url` (line 3, column 22)',
  ],
  [
    'embed: { disclaimer: { url: "javascript:1" } }',
    'embed.disclaimer.url: must be a URL that begins with https:// or http:// (line 3, column 29)',
  ],
  ['embed: { dictation: maybe }', 'embed.dictation: must be true or false (line 3, column 21)'],
  ...[
    'https://a.example',
    'a.example/x',
    'a.example:8443',
    '*',
    '*.example',
    'a.example; script-src *',
    'localhost',
    '127.0.0.1',
    'a b.example',
  ].map((host): [string, string] => [
    `embed: { imageHosts: ["${host}"] }`,
    'embed.imageHosts[0]: must be a host name such as images.example.org or *.example.org, without https://, a port or a path (line 3, column 23)',
  ]),
  [
    `embed: { imageHosts: [${toolNames(21).replaceAll('t', 'a.t')}] }`,
    'embed.imageHosts: must have at most 20 hosts (line 3, column 22)',
  ],
  ['embed: { followUps: 3 }', 'embed.followUps: must be true or false (line 3, column 21)'],
  ['embed: { title: 5 }', 'embed.title: must be a string (line 3, column 17)'],
  ['embed: { starters: [5] }', 'embed.starters[0]: must be a string (line 3, column 21)'],
  [
    `embed: { origins: [${toolNames(101).replaceAll('t', 'http://t')}] }`,
    'embed.origins: must have at most 100 origins (line 3, column 19)',
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
    'embed.origins[0]: must be an origin: http:// or https://, a host and an optional port, without a path (line 3, column 20)',
  ]),
]

/** Complete invalid definitions, each with its error. */
const invalidTexts: [text: string, message: string][] = [
  ['# a\nname: A', 'instructions: is required (line 2, column 1)'],
  ['instructions: a\nname:', 'name: is required (line 2, column 6)'],
  ['instructions: a\nname: 5', 'name: must be a string (line 2, column 7)'],
  ['instructions: a\nname: ""', 'name: must not be blank (line 2, column 7)'],
  [`instructions: a\nname: ${'é'.repeat(201)}`, 'name: must be at most 200 characters (line 2, column 7)'],
  ['name: A\ninstructions: |\n\n  \n', 'instructions: must not be blank (line 2, column 15)'],
  ['name: A\ninstructions: [a]', 'instructions: must be a string (line 2, column 15)'],
]

describe('an invalid definition', () => {
  test.each([
    ...invalidAdditions.map(([addition, message]) => [minimalDefinition + addition, message]),
    ...invalidTexts,
  ])('is rejected with an error that contains the position: %j', (text = '', message = '') => {
    expectDefinitionError(definitionErrorOf(text), message)
  })

  test('is rejected with a short one-line error, even if the invalid part is long', () => {
    const { message } = definitionErrorOf(
      `${minimalDefinition}"${'é\\n'.repeat(60)}": { "${'🙂'.repeat(100)}": .inf }`,
    )
    expect(message).toMatch(
      /^\["é\\n(é\\n){31}…"\]\["🙂{32}…"\]: must be a finite number \(line 3, column \d+\)$/u,
    )
  })
})

test('a definition can list image hosts, including wildcards for subdomains', () => {
  const imageHosts = ['images.example.org', '*.Example.co.uk', 'xn--bcher-kva.example']
  const { embed } = parseDefinition(`${minimalDefinition}embed: ${JSON.stringify({ imageHosts })}`, 'yaml')
  expect(embed).toEqual({ imageHosts })
})

test("toolName returns a tool's name from either notation", () => {
  expect([toolName('a'), toolName({ name: 'b', description: 'c' })]).toEqual(['a', 'b'])
})
