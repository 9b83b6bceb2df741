/** Checks the JSON Schemas of tools, including references and patterns, which a meta-schema cannot check. */
import { Ajv, type ErrorObject, type Options } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { z } from 'zod'
import { depthOf, isJsonObject, type Path } from './json.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

interface SchemaFault {
  readonly path: Path
  readonly problem: string
}

/** A subschema and its resource: the nearest enclosing schema with an `$id`. */
interface Place {
  readonly node: JsonSchema
  readonly path: Path
  readonly resource: JsonSchema
}

const referenceKeywords = ['$ref', '$dynamicRef', '$recursiveRef']
const anchorKeywords = ['$anchor', '$dynamicAnchor']

/** Keywords whose values are data that may look like a schema. */
const dataKeywords = new Set(['const', 'enum', 'default', 'examples', 'example'])

/** Keywords whose values are objects with arbitrary keys that may look like keywords. */
const namingKeywords = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
  '$defs',
  'definitions',
])

function findReferenceFault(schema: JsonSchema): SchemaFault | undefined {
  const places = listPlaces(schema)
  const anchors = new Set(places.flatMap(({ node }) => anchorsOf(node)))
  for (const { node, path, resource } of places) {
    for (const keyword of referenceKeywords) {
      const target = node[keyword]
      if (typeof target !== 'string') continue
      const isFound = target.startsWith('#') && (anchors.has(target.slice(1)) || isSchemaAt(resource, target))
      if (!isFound)
        return {
          path: [...path, keyword],
          problem: 'must refer to a schema inside this one, such as #/$defs/name',
        }
    }
  }
  return undefined
}

/** Returns a pattern that is not a valid regular expression. Patterns are compiled but never run. */
function findPatternFault(schema: JsonSchema): SchemaFault | undefined {
  for (const { node, path } of listPlaces(schema)) {
    if (typeof node.pattern === 'string' && toRegExp(node.pattern) === undefined) {
      return { path: [...path, 'pattern'], problem: 'must be a regular expression' }
    }
    const names = isJsonObject(node.patternProperties) ? Object.keys(node.patternProperties) : []
    const wrong = names.find((name) => toRegExp(name) === undefined)
    if (wrong !== undefined) {
      return {
        path: [...path, 'patternProperties', wrong],
        problem: 'key must be a regular expression',
      }
    }
  }
  return undefined
}

/**
 * Returns a copy of the schema without patterns, because matching a value against a malicious pattern could
 * take exponential time.
 */
export function withoutPatterns(schema: JsonSchema): JsonSchema {
  const copy = structuredClone(schema)
  for (const place of listPlaces(copy)) {
    const node: Record<string, unknown> = place.node
    delete node.pattern
    if (node.patternProperties === undefined) continue
    // `additionalProperties` and `unevaluatedProperties` apply to properties that match no pattern, so
    // without patterns they would reject valid values.
    for (const keyword of ['patternProperties', 'additionalProperties', 'unevaluatedProperties'])
      delete node[keyword]
  }
  return copy
}

/** Compiles a pattern, in Unicode mode if possible; returns undefined if it is invalid. */
export function toRegExp(source: string): RegExp | undefined {
  for (const flags of ['u', '']) {
    try {
      return new RegExp(source, flags)
    } catch {}
  }
  return undefined
}

function listPlaces(schema: JsonSchema): Place[] {
  const places: Place[] = []
  const enter = (value: unknown, path: Path, resource: JsonSchema, hasNames: boolean): void => {
    if (Array.isArray(value)) {
      for (const [index, child] of value.entries()) enter(child, [...path, index], resource, false)
    }
    if (!isJsonObject(value)) return
    const inner = typeof value.$id === 'string' && !isAnchorId(value.$id) ? value : resource
    if (!hasNames) places.push({ node: value, path, resource: inner })
    for (const [key, child] of Object.entries(value)) {
      if (!hasNames && dataKeywords.has(key)) continue
      enter(child, [...path, key], inner, !hasNames && namingKeywords.has(key))
    }
  }
  enter(schema, [], schema, false)
  return places
}

function anchorsOf(node: JsonSchema): unknown[] {
  const anchors = anchorKeywords.map((keyword) => node[keyword])
  return isAnchorId(node.$id) ? [...anchors, node.$id.slice(1)] : anchors
}

/** In draft-07, an `$id` that consists of a fragment defines an anchor. */
function isAnchorId(id: unknown): id is string {
  return typeof id === 'string' && id.startsWith('#')
}

function isSchemaAt(resource: JsonSchema, reference: string): boolean {
  const [root, ...segments] = decodeFragment(reference).split('/')
  if (root !== '') return false
  let value: unknown = resource
  for (const segment of segments.map(unescapePointer)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return false
    value = Reflect.get(value, segment)
  }
  return isJsonObject(value) || typeof value === 'boolean'
}

function decodeFragment(reference: string): string {
  try {
    return decodeURIComponent(reference.slice(1))
  } catch {
    return reference.slice(1)
  }
}

export function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
}

const mostBytes = 64 * 1024

const mostNodes = 2000

const mostLevels = 16

/**
 * Checks the schema against the dialect in `$schema`, draft-07 or 2020-12 (default); allows unknown keywords.
 */
export function findSchemaFault(schema: JsonSchema): SchemaFault | undefined {
  const dialect = dialectOf(schema.$schema)
  if (dialect === undefined) return { path: ['$schema'], problem: 'must be JSON Schema draft-07 or 2020-12' }
  if (schema.type !== undefined && schema.type !== 'object')
    return { path: ['type'], problem: 'must be object' }
  return findKeywordFault(schema, dialect) ?? findReferenceFault(schema) ?? findPatternFault(schema)
}

/**
 * Checks the depth, references and patterns of a schema from a client. Does not check keywords, because
 * providers accept different dialects.
 */
export function findUnsafePart(schema: JsonSchema): SchemaFault | undefined {
  if (depthOf(Buffer.from(JSON.stringify(schema))) > mostLevels)
    return { path: [], problem: `must be nested at most ${mostLevels} levels deep` }
  return findReferenceFault(schema) ?? findPatternFault(schema)
}

export function findSizeProblem(schemas: readonly JsonSchema[]): string | undefined {
  if (Buffer.byteLength(JSON.stringify(schemas)) > mostBytes)
    return 'must contain at most 64 KiB of input schemas'
  const nodes = schemas.reduce((sum, schema) => sum + countNodes(schema), 0)
  return nodes > mostNodes ? `must contain at most ${mostNodes} values in input schemas` : undefined
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

export function dialectOf(named: unknown): Dialect | undefined {
  if (named === undefined) return '2020-12'
  const address = String(named)
    .replace(/^https?:/, '')
    .replace(/#$/, '')
  if (address === '//json-schema.org/draft-07/schema') return 'draft-07'
  return address === '//json-schema.org/draft/2020-12/schema' ? '2020-12' : undefined
}

const options: Options = { strict: false, logger: false, addUsedSchema: false, validateFormats: false }

/** Created on first use, because compiling a meta-schema takes 20 ms. */
const validators: { [Name in Dialect]?: Ajv | Ajv2020 } = {}

function findKeywordFault(schema: JsonSchema, dialect: Dialect): SchemaFault | undefined {
  const validator = validators[dialect] ?? (dialect === 'draft-07' ? new Ajv(options) : new Ajv2020(options))
  validators[dialect] = validator
  try {
    if (validator.validate(metaSchemas[dialect], schema)) return undefined
  } catch {
    // The library calls `valueOf` on enum values, which throws if the schema sets it to a value that is not a
    // function.
    return { path: [], problem: 'must contain only values that can be compared' }
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

function withIndexes(schema: JsonSchema, segments: readonly string[]): Path {
  let value: unknown = schema
  return segments.map((segment) => {
    const isIndex = Array.isArray(value)
    value = typeof value === 'object' && value !== null ? Reflect.get(value, segment) : undefined
    return isIndex ? Number(segment) : segment
  })
}

export const Text = z.string({ error: orMissing('must be a string') })

export function orMissing(problem: string): z.core.$ZodErrorMap {
  return (issue) => (issue.input === undefined ? 'is required' : problem)
}
