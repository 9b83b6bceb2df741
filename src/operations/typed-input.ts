/** Reads tRPC input from superjson's envelope, without superjson, which trusts its input (ADR 0001). */
import { ServiceError } from '../lib/errors.ts'

/** Maximum number of annotated paths; far more than a chat with two undefined fields per message needs. */
const MAX_PATHS = 10_000

interface Place {
  readonly holder: object
  readonly key: string
  readonly value: unknown
}

/**
 * Returns `json` without the fields that `meta` marks as undefined. Returns null, which no operation accepts,
 * if there is no envelope.
 */
export function readTypedInput(sent: { json?: unknown; meta?: unknown } | null | undefined): unknown {
  if (typeof sent !== 'object' || sent === null || !Object.hasOwn(sent, 'json')) return null
  const { json, meta } = sent
  if (meta === undefined || meta === null) return json
  if (!isObject(meta)) throw refuse('must be an object')
  const { values, referentialEqualities } = meta
  // A list, unlike an object, applies to the whole input.
  if (Array.isArray(values)) {
    if (values.length !== 1 || values[0] !== 'undefined')
      throw refuse('describes a value that JSON cannot represent')
    return undefined
  }
  const budget = { pathsLeft: MAX_PATHS }
  assertWritten(json, referentialEqualities, budget)
  applyValues(json, values, budget)
  return json
}

/** Applies the annotations `{ path: [type] }` to the values at these paths. */
function applyValues(json: unknown, values: unknown, budget: Budget): void {
  if (values === undefined) return
  if (!isObject(values)) throw refuse('has invalid values')
  for (const path in values) {
    const annotation = values[path]
    const place = findPlace(json, path, budget)
    if (!Array.isArray(annotation) || annotation.length !== 1)
      throw refuse('describes a value that JSON cannot represent')
    applyType(place, annotation[0])
  }
}

/** Replaces a value with what plain JSON encoding would produce. */
function applyType({ holder, key, value }: Place, type: unknown): void {
  switch (type) {
    case 'undefined':
      // In lists, JSON and superjson encode undefined as null.
      if (!Array.isArray(holder)) Reflect.deleteProperty(holder, key)
      return
    case 'number':
      // JSON encodes -0 as 0, and NaN and infinities as null.
      Reflect.set(holder, key, value === '-0' ? 0 : null)
      return
    case 'Date':
    case 'URL':
      // JSON and superjson encode these as the same text.
      return
    default:
      throw refuse('describes a value that JSON cannot represent')
  }
}

/**
 * Rejects circular inputs. Ignores all other shared references, because `json` contains a copy of each shared
 * value.
 */
function assertWritten(json: unknown, equalities: unknown, budget: Budget): void {
  if (equalities === undefined) return
  // If this is a list, its paths refer to the whole input, so the input is circular.
  if (!isObject(equalities) || Array.isArray(equalities)) throw refuse('must not contain circular references')
  for (const original in equalities) {
    findPlace(json, original, budget)
    const copies = equalities[original]
    if (!Array.isArray(copies)) throw refuse('has invalid referentialEqualities')
    for (const copy of copies) {
      if (findPlace(json, copy, budget).value === null) throw refuse('must not contain circular references')
    }
  }
}

interface Budget {
  pathsLeft: number
}

/** Returns the value at a path such as `messages.0.name`; follows only own properties. */
function findPlace(json: unknown, path: unknown, budget: Budget): Place {
  budget.pathsLeft -= 1
  if (budget.pathsLeft < 0) throw refuse(`has more than ${MAX_PATHS} paths`)
  if (typeof path !== 'string') throw refuse('has a path that is not a string')
  let place: Place | undefined
  let value = json
  for (const key of splitPath(path)) {
    if (!isObject(value) || !Object.hasOwn(value, key)) throw refuse('has a path that is not in the input')
    place = { holder: value, key, value: value[key] }
    value = place.value
  }
  return place as Place
}

/** Splits a path into one or more keys. A backslash escapes a dot or a backslash. */
function* splitPath(path: string): Generator<string> {
  let key = ''
  let from = 0
  for (let at = 0; at < path.length; at++) {
    const isEscape = path[at] === '\\' && (path[at + 1] === '.' || path[at + 1] === '\\')
    if (!isEscape && path[at] !== '.') continue
    key += path.slice(from, at)
    from = at + 1
    if (isEscape) {
      at += 1
      continue
    }
    yield key
    key = ''
  }
  yield key + path.slice(from)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function refuse(what: string): ServiceError {
  return new ServiceError('invalid_value', `meta ${what}; send plain JSON in json.`)
}
