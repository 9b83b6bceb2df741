/** Judges the JSON Schemas of an agent's tools without ever running one: no code is made of a caller's schema. */
import { Ajv, type ErrorObject, type Options } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isRecord } from './fields.ts'
import type { Path } from './refusal.ts'

const mostBytes = 64 * 1024
const mostNodes = 2000

export type JsonSchema = Readonly<Record<string, unknown>>

/** What is wrong with a schema, and where in it. */
export interface SchemaFault {
  readonly path: Path
  readonly problem: string
}

/**
 * The first fault of a tool's input schema, read as the dialect its `$schema` names (draft-07, or 2020-12 which is also the
 * default). Keywords of no dialect are let through; references lead nowhere but into the schema itself. Security: 2.6.
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
  if (countNodes(schemas) - 1 > mostNodes) return `must hold at most ${mostNodes} values in input schemas`
  return undefined
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

function dialectOf(named: unknown): Dialect | undefined {
  if (named === undefined) return '2020-12'
  if (typeof named !== 'string') return undefined
  const address = named.replace(/^https?:/, '').replace(/#$/, '')
  if (address === '//json-schema.org/draft-07/schema') return 'draft-07'
  return address === '//json-schema.org/draft/2020-12/schema' ? '2020-12' : undefined
}

const options: Options = { strict: false, logger: false, addUsedSchema: false, validateFormats: false }

/** Made at the first need: reading the meta-schemas takes longer than the rest of a start. */
const validators: { [Name in Dialect]?: Ajv | Ajv2020 } = {}

function validatorOf(dialect: Dialect): Ajv | Ajv2020 {
  const validator = validators[dialect] ?? (dialect === 'draft-07' ? new Ajv(options) : new Ajv2020(options))
  validators[dialect] = validator
  return validator
}

function findKeywordFault(schema: JsonSchema, dialect: Dialect): SchemaFault | undefined {
  const validator = validatorOf(dialect)
  if (validator.validate(metaSchemas[dialect], schema)) return undefined
  const fault = validator.errors?.[0]
  if (fault === undefined) return { path: [], problem: 'must be a JSON Schema' }
  const path = fault.instancePath.split('/').slice(1).map(unescapePointer)
  return { path: withIndexes(schema, path), problem: describe(fault) }
}

function describe({ keyword, params, message }: ErrorObject): string {
  if (keyword === 'enum') return `must be one of ${params.allowedValues.join(', ')}`
  return message ?? 'must be valid JSON Schema'
}

const referenceKeywords = ['$ref', '$dynamicRef', '$recursiveRef']
const anchorKeywords = ['$anchor', '$dynamicAnchor']

/** Finds a reference that leaves the schema or leads to nothing in it. */
function findReferenceFault(schema: JsonSchema): SchemaFault | undefined {
  const places = listPlaces(schema)
  const anchors = new Set(
    places.flatMap(({ node }) => [
      ...anchorKeywords.map((keyword) => node[keyword]),
      isAnchorId(node.$id) ? node.$id.slice(1) : undefined,
    ]),
  )
  for (const { node, path, resource } of places) {
    for (const keyword of referenceKeywords) {
      const target = node[keyword]
      if (typeof target !== 'string') continue
      const isFound = target.startsWith('#') && (anchors.has(target.slice(1)) || isSchemaAt(resource, target))
      if (!isFound)
        return { path: [...path, keyword], problem: 'must lead to a schema inside this one, as #/… does' }
    }
  }
  return undefined
}

/** Patterns are read, never run. */
function findPatternFault(schema: JsonSchema): SchemaFault | undefined {
  for (const { node, path } of listPlaces(schema)) {
    if (typeof node.pattern === 'string' && !isPattern(node.pattern)) {
      return { path: [...path, 'pattern'], problem: 'must be a regular expression' }
    }
    const names = isRecord(node.patternProperties) ? Object.keys(node.patternProperties) : []
    const wrong = names.find((name) => !isPattern(name))
    if (wrong !== undefined) {
      return {
        path: [...path, 'patternProperties', wrong],
        problem: 'must have a regular expression as its key',
      }
    }
  }
  return undefined
}

function isPattern(source: string): boolean {
  return ['u', ''].some((flags) => {
    try {
      return new RegExp(source, flags) instanceof RegExp
    } catch {
      return false
    }
  })
}

/** A schema or subschema, and the resource it is in: the nearest schema around it that has an `$id`. */
interface Place {
  readonly node: JsonSchema
  readonly path: Path
  readonly resource: JsonSchema
}

/** Keywords whose value is data, and those whose keys are names rather than keywords. */
const dataKeywords = new Set(['const', 'enum', 'default', 'examples', 'example'])
const namingKeywords = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
  '$defs',
  'definitions',
])

function listPlaces(schema: JsonSchema): Place[] {
  const places: Place[] = []
  const enter = (value: unknown, path: Path, resource: JsonSchema, keysAreNames: boolean): void => {
    if (Array.isArray(value))
      value.forEach((child, index) => void enter(child, [...path, index], resource, false))
    if (!isRecord(value)) return
    const inner = typeof value.$id === 'string' && !isAnchorId(value.$id) ? value : resource
    if (!keysAreNames) places.push({ node: value, path, resource: inner })
    for (const [key, child] of Object.entries(value)) {
      if (keysAreNames || !dataKeywords.has(key)) {
        enter(child, [...path, key], inner, !keysAreNames && namingKeywords.has(key))
      }
    }
  }
  enter(schema, [], schema, false)
  return places
}

/** Draft-07 writes an anchor as an `$id` that is only a fragment. */
function isAnchorId(id: unknown): id is string {
  return typeof id === 'string' && id.startsWith('#')
}

/** Whether a reference `#/a/b` leads to a schema, which is an object or a boolean. */
function isSchemaAt(resource: JsonSchema, reference: string): boolean {
  const [root, ...segments] = decodeFragment(reference).split('/')
  if (root !== '') return false
  let value: unknown = resource
  for (const segment of segments.map(unescapePointer)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return false
    value = Reflect.get(value, segment)
  }
  return isRecord(value) || typeof value === 'boolean'
}

function decodeFragment(reference: string): string {
  try {
    return decodeURIComponent(reference.slice(1))
  } catch {
    return reference.slice(1)
  }
}

function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~')
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
