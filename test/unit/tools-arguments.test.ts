/** Tests how tool arguments are validated and tool results are truncated. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Rule, readArguments } from '../../src/tools/arguments.ts'
import { capText } from '../../src/tools/run.ts'

const host = (schema: Rule['schema']): Rule => ({ schema, origin: 'host' })
const foreign = (schema: Rule['schema']): Rule => ({ schema, origin: 'agent' })

/**
 * Returns a schema that takes 2 ** 40 steps to validate: each of forty definitions refers to the next one
 * twice.
 */
const exploding = () => ({
  $ref: '#/$defs/d0',
  $defs: Object.fromEntries(
    Array.from({ length: 41 }, (_, index) => {
      const next = { $ref: `#/$defs/d${index + 1}` }
      return [`d${index}`, index === 40 ? { type: 'object' } : { allOf: [next, next] }]
    }),
  ),
})

describe('valid tool arguments', () => {
  test.each<[what: string, text: string, rules: Rule[]]>([
    ['without a schema', '{"a":[{"b":null}]}', []],
    [
      'for a 2020-12 schema',
      '{"a":[1,"x"]}',
      [host({ properties: { a: { prefixItems: [{ type: 'integer' }] } } })],
    ],
    [
      'for a draft-07 schema',
      '{"a":[1,"x"]}',
      [
        host({
          $schema: 'http://json-schema.org/draft-07/schema#',
          properties: { a: { items: [{ type: 'integer' }, { type: 'string' }] } },
        }),
      ],
    ],
    ['for a schema that refers to itself', '{"a":{"a":{}}}', [host({ properties: { a: { $ref: '#' } } })]],
    ['without a check of formats', '{"a":"no"}', [host({ properties: { a: { format: 'email' } } })]],
    [
      "without a check of patterns in an agent's schema",
      '{"a":"no"}',
      [foreign({ properties: { a: { pattern: '^yes$' } } })],
    ],
    [
      "without a check of property patterns in an agent's schema",
      '{"a":"no"}',
      [foreign({ patternProperties: { '^b': {} }, additionalProperties: false })],
    ],
    [
      'for properties named like keywords',
      '{"pattern":"x"}',
      [foreign({ properties: { pattern: { type: 'string' } }, required: ['pattern'] })],
    ],
    [
      'for a schema with a reference into its removed patterns',
      '{"a":1}',
      [
        foreign({
          properties: { a: { $ref: '#/patternProperties/b' } },
          patternProperties: { b: { type: 'string' } },
        }),
      ],
    ],
  ])('are accepted %s', (_what, text, rules) => {
    expect(readArguments(text, rules)).toEqual({ args: JSON.parse(text) })
  })
})

describe('invalid tool arguments', () => {
  const deep = `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`

  const cases: [text: string, rules: Rule[], problem: string][] = [
    ['', [], 'they are not valid JSON'],
    ['{"a":NaN}', [], 'they are not valid JSON'],
    ['null', [], 'they must be a JSON object'],
    ['[]', [], 'they must be a JSON object'],
    ['{"a":{"\\u005f_proto__":1}}', [], 'they contain the key __proto__'],
    [deep, [], 'they are nested deeper than 64 levels'],
    [`{"a":"${'x'.repeat(262_144)}"}`, [], 'they are larger than 256 KiB'],
    [
      '{"list":[{"a b":1}]}',
      [host({ properties: { list: { items: { properties: { 'a b': { type: 'string' } } } } } })],
      'list[0]["a b"] must be string',
    ],
    ['{"a":{"a":1}}', [host({ properties: { a: { $ref: '#' } } })], 'a.a must be object'],
    ['{"b":1}', [host({ additionalProperties: false })], "must NOT have additional properties ('b')"],
    ['{"a":"c"}', [host({ properties: { a: { enum: ['a', 'b'] } } })], 'a must be one of a, b'],
    [
      '{"a":"no"}',
      [host({ properties: { a: { pattern: '^[\\w-]\\-$' } } })],
      'a must match pattern "^[\\w-]\\-$"',
    ],
    ['{}', [host({}), foreign({ required: ['a'] })], "must have required property 'a'"],
    ['{}', [foreign({ allOf: [{ $ref: '#' }] })], 'the schema cannot be evaluated'],
    ['{}', [host(exploding())], 'validating them against the schema timed out'],
    ['{}', [foreign(exploding())], 'validating them against the schema timed out'],
    [
      `{"a":"${'a'.repeat(60)}!"}`,
      [host({ properties: { a: { pattern: '^(a+)+$' } } })],
      'validating them against the schema timed out',
    ],
  ]
  const byProblem = cases.map(([text, rules, problem]) => [problem, text, rules] as const)
  test.each(byProblem)('are rejected: %s', (problem, text, rules) => {
    expect(readArguments(text, rules)).toEqual({ problem })
  })

  test("are rejected without validation if the agent's schema has timed out before", () => {
    const [fromAgent, fromHost] = [foreign(exploding()), host(exploding())]
    const server: Rule = { schema: exploding(), origin: 'mcp' }
    for (const rule of [fromAgent, fromHost, server]) readArguments('{}', [rule])
    expect(readArguments('{}', [fromAgent])).toEqual({
      problem: 'they cannot be checked, because validating them against the schema takes too long',
    })
    for (const rule of [fromHost, server]) {
      expect(readArguments('{}', [rule])).toEqual({ problem: 'validating them against the schema timed out' })
    }
  })
})

describe('a tool result', () => {
  test.each([0, 1, 65_535, 65_536])('is not truncated at %i bytes', (sizeBytes) => {
    expect(capText('x'.repeat(sizeBytes))).toBe('x'.repeat(sizeBytes))
  })

  test('is truncated to at most 64 KiB, including a note about the truncation', () => {
    const character = fc.constantFrom('a', 'é', '€', '😀', '\ud83d')
    fc.assert(
      fc.property(fc.array(character, { minLength: 1, maxLength: 20 }), (characters) => {
        const text = characters.join('').repeat(65_537)
        const [kept = '', note] = capText(text).split('\n[The result was truncated: ')
        expect(text.toWellFormed().startsWith(kept)).toBe(true)
        expect(note).toBe(`it has ${Buffer.byteLength(text)} bytes, and only the beginning is shown.]`)
        const sizeBytes = Buffer.byteLength(capText(text))
        expect(sizeBytes).toBeLessThanOrEqual(65_536)
        expect(sizeBytes).toBeGreaterThan(65_536 - 4)
      }),
      { numRuns: 40 },
    )
  })
})
