/** Finds the operation of a request by its method and path. */
import { ServiceError } from '../lib/errors.ts'
import type { Http } from './operation.ts'

interface Routable {
  readonly http: Http
  readonly request?: { readonly takesRest?: true } | undefined
}

interface Pattern<O> {
  readonly segments: readonly string[]
  readonly takesRest: boolean
  readonly byMethod: Map<string, O>
}

/** Looks up fixed paths in a map, then tries patterns, starting with those with the most fixed segments. */
export function createRouteTable<O extends Routable>(operations: readonly O[]) {
  const fixed = new Map<string, Map<string, O>>()
  const patterns = new Map<string, Pattern<O>>()
  for (const operation of operations) {
    const { path, method } = operation.http
    if (!path.includes('{')) {
      const byMethod = fixed.get(path) ?? new Map()
      fixed.set(path, byMethod.set(method, operation))
      continue
    }
    const takesRest = operation.request?.takesRest === true
    const pattern = patterns.get(path) ?? { segments: path.split('/'), takesRest, byMethod: new Map() }
    pattern.byMethod.set(method, operation)
    patterns.set(path, pattern)
  }
  const ordered = [...patterns.values()].sort((a, b) => countParams(a.segments) - countParams(b.segments))

  return {
    /** Returns the request's operation and decoded path parameters; HEAD matches GET operations. */
    match(method: string, path: string): { operation: O; params: Readonly<Record<string, string>> } {
      const byMethod = fixed.get(path)
      if (byMethod !== undefined) return { operation: choose(byMethod, method), params: {} }
      const segments = path.split('/')
      for (const pattern of ordered) {
        const values = matchSegments(pattern, segments)
        if (values === undefined) continue
        return { operation: choose(pattern.byMethod, method), params: decodeParams(values) }
      }
      throw new ServiceError('not_found', `Path not found: ${path}`)
    },
  }
}

function countParams(segments: readonly string[]): number {
  return segments.filter(isParam).length
}

function isParam(segment: string): boolean {
  return segment.startsWith('{')
}

function matchSegments(
  { segments: expected, takesRest }: Pattern<unknown>,
  segments: readonly string[],
): [string, string][] | undefined {
  if (takesRest ? segments.length < expected.length : segments.length !== expected.length) return undefined
  const values: [string, string][] = []
  for (const [index, segment] of expected.entries()) {
    const isLast = index === expected.length - 1
    const value = takesRest && isLast ? segments.slice(index).join('/') : (segments[index] as string)
    if (!isParam(segment)) {
      if (segment !== value) return undefined
    } else if (value === '') return undefined
    else values.push([segment.slice(1, -1), value])
  }
  return values
}

function decodeParams(values: readonly [string, string][]): Record<string, string> {
  try {
    return Object.fromEntries(values.map(([name, value]) => [name, decodeURIComponent(value)]))
  } catch {
    throw new ServiceError('invalid_value', 'The path contains invalid percent-encoding.')
  }
}

function choose<O>(byMethod: Map<string, O>, method: string): O {
  const operation = byMethod.get(method === 'HEAD' ? 'GET' : method)
  if (operation !== undefined) return operation
  const allow = [...byMethod.keys()]
  if (byMethod.has('GET')) allow.push('HEAD')
  throw new ServiceError(
    'method_not_allowed',
    `${method} is not allowed for this path; use ${allow.join(', ')}.`,
    {
      allow: [...allow, 'OPTIONS'],
    },
  )
}
