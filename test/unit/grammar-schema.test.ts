/** Tests that a JSON Schema is reduced to keywords that grammars support, without excluding valid values. */
import { describe, expect, test } from 'vitest'
import { toGrammarSchema } from '../../packages/in-process/src/grammar-schema.ts'

const any = toGrammarSchema({})
const text = { type: 'string' }

describe('toGrammarSchema', () => {
  test.each<[what: string, schema: unknown, grammar: object]>([
    ['one type', { type: 'integer', minimum: 3 }, { type: 'integer' }],
    ['several scalar types', { type: ['string', 'null'], maxLength: 3 }, { type: ['string', 'null'] }],
    [
      'a scalar and a list',
      { type: ['null', 'array'], items: text },
      { oneOf: [{ type: 'null' }, { type: 'array', items: text }] },
    ],
    ['a description', { ...text, description: 'a name' }, { ...text, description: 'a name' }],
    [
      'a string with length limits',
      { ...text, minLength: 1, maxLength: 9, pattern: 'a' },
      { ...text, minLength: 1, maxLength: 9 },
    ],
    ['a string limit too high for a grammar', { ...text, maxLength: 100_000 }, text],
    [
      'a maximum length below the minimum',
      { ...text, minLength: 3, maxLength: 2 },
      { ...text, minLength: 3 },
    ],
    [
      'more tuple items than maxItems',
      { prefixItems: [text, text], maxItems: 1 },
      { type: 'array', prefixItems: [text, text] },
    ],
    [
      'a list limit too high for a grammar',
      { items: text, minItems: 1, maxItems: 101 },
      { type: 'array', items: text, minItems: 1 },
    ],
    ['a date format', { ...text, format: 'date' }, { ...text, format: 'date' }],
    ['an unsupported format', { ...text, format: 'email' }, text],
    ['enum values', { type: 'string', enum: ['a', 'b'] }, { enum: ['a', 'b'] }],
    ['a constant', { const: null }, { const: null }],
    [
      'enum values that are not scalars',
      { type: 'object', enum: [{}] },
      { type: 'object', properties: {}, additionalProperties: true },
    ],
    ['anyOf alternatives', { anyOf: [text, { type: 'null' }] }, { oneOf: [text, { type: 'null' }] }],
    ['allOf with one schema', { allOf: [text] }, text],
    [
      'a list with item limits',
      { items: text, minItems: 1, maxItems: 2 },
      { type: 'array', items: text, minItems: 1, maxItems: 2 },
    ],
    ['a tuple', { type: 'array', prefixItems: [text] }, { type: 'array', prefixItems: [text] }],
    [
      'an object',
      { properties: { a: text, b: {} }, required: ['a'] },
      { type: 'object', properties: { a: text, b: any }, additionalProperties: false },
    ],
    [
      'an object without properties',
      { type: 'object' },
      { type: 'object', properties: {}, additionalProperties: true },
    ],
    [
      'an object with additional properties',
      { type: 'object', additionalProperties: text, maxProperties: 3 },
      { type: 'object', properties: {}, additionalProperties: text, maxProperties: 3 },
    ],
    [
      'definitions in both notations',
      { $ref: '#/definitions/a', definitions: { a: { $ref: '#/$defs/b' } }, $defs: { b: text } },
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: text } },
    ],
  ])('converts %s', (_what, schema, grammar) => {
    expect(toGrammarSchema(schema)).toEqual(grammar)
  })

  test.each<[what: string, schema: unknown]>([
    ['a non-schema', 'x'],
    ['the schema true', true],
    ['a schema without a type', { description: undefined, title: 'x' }],
    ['an unknown type', { type: 'date' }],
    ['allOf with several schemas', { allOf: [text, text] }],
    ['a dangling reference', { $ref: '#/$defs/a' }],
    ['an external reference', { $ref: 'https://schemas.org/a' }],
  ])('allows any value for %s', (_what, schema) => {
    expect(toGrammarSchema(schema)).toEqual(any)
  })

  test('allows any value for schemas nested below the maximum depth', () => {
    let schema: object = text
    for (let depth = 0; depth < 40; depth++) schema = { type: 'array', items: schema }
    let found: unknown = toGrammarSchema(schema)
    let depth = 0
    for (; (found as { type?: string }).type === 'array'; depth++) found = (found as { items: unknown }).items
    expect({ depth, found }).toEqual({ depth: 33, found: any })
  })
})
