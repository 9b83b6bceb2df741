/** Tests which input schemas the tools of an agent definition may have. */
import { describe, expect, test } from 'vitest'
import { parseDefinition } from '../../src/agents/definition.ts'
import {
  definitionErrorOf,
  expectDefinitionError,
  minimalDefinition,
  toolNames,
  withSchema,
} from '../support/definition.ts'

/** Invalid input schemas with their errors. In the definition, each schema starts at column 33. */
const invalidSchemas: [schema: string, message: string][] = [
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
    '$ref: must refer to a schema inside this one, such as #/$defs/name (line 3, column 41)',
  ],
  [
    '{ properties: { a: { $ref: b.json } } }',
    'properties.a.$ref: must refer to a schema inside this one, such as #/$defs/name (line 3, column 60)',
  ],
  [
    '{ items: { $ref: "#/$defs/a" } }',
    'items.$ref: must refer to a schema inside this one, such as #/$defs/name (line 3, column 50)',
  ],
  [
    '{ items: { $ref: "#/type" }, type: object }',
    'items.$ref: must refer to a schema inside this one, such as #/$defs/name (line 3, column 50)',
  ],
  [
    '{ items: { $ref: "#a" } }',
    'items.$ref: must refer to a schema inside this one, such as #/$defs/name (line 3, column 50)',
  ],
  [
    '{ items: { $ref: "#/toString" } }',
    'items.$ref: must refer to a schema inside this one, such as #/$defs/name (line 3, column 50)',
  ],
  [
    '{ items: { $ref: "#/%" } }',
    'items.$ref: must refer to a schema inside this one, such as #/$defs/name (line 3, column 50)',
  ],
  [
    '{ items: { $dynamicRef: "https://a.com" } }',
    'items.$dynamicRef: must refer to a schema inside this one, such as #/$defs/name (line 3, column 57)',
  ],
  [
    '{ properties: { a: { pattern: "(" } } }',
    'properties.a.pattern: must be a regular expression (line 3, column 63)',
  ],
  [
    '{ patternProperties: { "[": {} } }',
    'patternProperties["["]: key must be a regular expression (line 3, column 61)',
  ],
]

const validSchemas = [
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

describe('an invalid input schema', () => {
  test.each(
    invalidSchemas.map(([schema, message]) => [withSchema(schema), `tools[0].inputSchema.${message}`]),
  )('is rejected with an error that contains the position: %j', (text = '', message = '') => {
    expectDefinitionError(definitionErrorOf(text), message)
  })

  test('is rejected if its enum contains values that the schema library cannot compare', () => {
    const draft = '$schema: "http://json-schema.org/draft-07/schema"'
    const text = withSchema(`{ ${draft}, enum: [{ valueOf: 1 }, { valueOf: 2 }] }`)
    expectDefinitionError(
      definitionErrorOf(text),
      'tools[0].inputSchema: must contain only values that can be compared (line 3, column 33)',
    )
  })
})

describe("a tool's input schema", () => {
  test.each(validSchemas)('may be %s', (schema) => {
    expect(parseDefinition(withSchema(schema), 'yaml').tools).toHaveLength(1)
  })

  test('is included in the 64 KiB limit on the schemas of all tools', () => {
    const two = (bytes: number) => {
      const filler = `{"description":"${'x'.repeat(32 * 1024)}"}`
      const rest = 64 * 1024 - JSON.stringify([JSON.parse(filler), { description: '' }]).length + bytes
      return `${minimalDefinition}tools: [{ name: a, inputSchema: ${filler} }, { name: b, inputSchema: { description: ${'y'.repeat(rest)} } }]`
    }
    expect(parseDefinition(two(0), 'yaml').tools).toHaveLength(2)
    expectDefinitionError(
      definitionErrorOf(two(1)),
      'tools: must contain at most 64 KiB of input schemas (line 3, column 8)',
    )
  })

  test('is included in the 2,000-value limit on the schemas of all tools', () => {
    const two = (values: number) =>
      `${minimalDefinition}tools: [{ name: a, inputSchema: { required: [${toolNames(values - 5)}] } }, { name: b, inputSchema: { enum: [1] } }]`
    expect(parseDefinition(two(2000), 'yaml').tools).toHaveLength(2)
    expectDefinitionError(
      definitionErrorOf(two(2001)),
      'tools: must contain at most 2000 values in input schemas (line 3, column 8)',
    )
  })
})
