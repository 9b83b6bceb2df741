/** Judges the JSON Schemas of an agent's tools without ever running one: no code is made of a caller's schema. */
import { Ajv, type ErrorObject, type Options } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Path } from './refusal.ts'
import {
  findPatternFault,
  findReferenceFault,
  type JsonSchema,
  type SchemaFault,
  unescapePointer,
} from './schema-places.ts'

const mostBytes = 64 * 1024
const mostNodes = 2000

/**
 * The first fault of a tool's input schema, read as the dialect its `$schema` names: draft-07, or 2020-12 which is also the
 * default. Keywords of no dialect are let through. Security: 2.6.
 */
export function findSchemaFault(schema: JsonSchema): SchemaFault | undefined {
  const dialect = dialectOf(schema.$schema)
  if (dialect === undefined) return { path: ['$schema'], problem: 'must be JSON Schema draft-07 or 2020-12' }
  if (schema.type !== undefined && schema.type !== 'object')
    return { path: ['type'], problem: 'must be object' }
  return findKeywordFault(schema, dialect) ?? findReferenceFault(schema) ?? findPatternFault(schema)
}

/** What is too much of all input schemas of an agent together: bytes as JSON, or values. Security: 2.5. */
export function findSizeProblem(schemas: readonly JsonSchema[]): string | undefined {
  if (Buffer.byteLength(JSON.stringify(schemas)) > mostBytes)
    return 'must hold at most 64 KiB of input schemas'
  const nodes = schemas.reduce((sum, schema) => sum + countNodes(schema), 0)
  return nodes > mostNodes ? `must hold at most ${mostNodes} values in input schemas` : undefined
}

function countNodes(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, child) => sum + countNodes(child), 1)
}

type Dialect = keyof typeof metaSchemas

const metaSchemas = {
  'draft-07': 'http://json-schema.org/draft-07/schema',
  '2020-12': 'https://json-schema.org/draft/2020-12/schema',
} as const

/** The dialect that a schema's `$schema` names; undefined for any but these. */
export function dialectOf(named: unknown): Dialect | undefined {
  if (named === undefined) return '2020-12'
  const address = String(named)
    .replace(/^https?:/, '')
    .replace(/#$/, '')
  if (address === '//json-schema.org/draft-07/schema') return 'draft-07'
  return address === '//json-schema.org/draft/2020-12/schema' ? '2020-12' : undefined
}

const options: Options = { strict: false, logger: false, addUsedSchema: false, validateFormats: false }

/** Made at the first need: the meta-schemas take 20 ms each to compile. */
const validators: { [Name in Dialect]?: Ajv | Ajv2020 } = {}

function validatorOf(dialect: Dialect): Ajv | Ajv2020 {
  const validator = validators[dialect] ?? (dialect === 'draft-07' ? new Ajv(options) : new Ajv2020(options))
  validators[dialect] = validator
  return validator
}

function findKeywordFault(schema: JsonSchema, dialect: Dialect): SchemaFault | undefined {
  const validator = validatorOf(dialect)
  try {
    if (validator.validate(metaSchemas[dialect], schema)) return undefined
  } catch {
    // The library compares enum values by their own `valueOf`, whatever it is.
    return { path: [], problem: 'must hold values that can be compared' }
  }
  const fault = validator.errors?.[0]
  if (fault === undefined) return { path: [], problem: 'must be a JSON Schema' }
  const segments = fault.instancePath.split('/').slice(1).map(unescapePointer)
  return { path: withIndexes(schema, segments), problem: describe(fault) }
}

function describe({ keyword, params, message }: ErrorObject): string {
  if (keyword === 'enum') return `must be one of ${params.allowedValues.join(', ')}`
  return message ?? 'must be valid JSON Schema'
}

/** A pointer's segments as a path: what points into a list becomes a number. */
function withIndexes(schema: JsonSchema, segments: readonly string[]): Path {
  let value: unknown = schema
  return segments.map((segment) => {
    const isIndex = Array.isArray(value)
    value = typeof value === 'object' && value !== null ? Reflect.get(value, segment) : undefined
    return isIndex ? Number(segment) : segment
  })
}
