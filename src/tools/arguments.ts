/** Judges what a model calls a tool with: JSON text, then a value that fits the tool's schema. */
import { createContext, Script } from 'node:vm'
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isJsonObject, renderPath } from '../lib/formats/json.ts'
import {
  dialectOf,
  type JsonSchema,
  toRegExp,
  unescapePointer,
  withoutPatterns,
} from '../lib/formats/json-schema.ts'
import type { ServerTool } from './tools.ts'

/** Security: 2.5 (tool arguments). */
const MOST_BYTES = 256 * 1024
const DEEPEST = 64
/** References can make a schema of a few lines take years, and a pattern likewise: so much of the processor is enough. */
const MOST_CPU_MS = 50
/** The clock runs on while others have the processor, so it is only when it has rung that anybody looks who had it. */
const ALARM_MS = 100
const MOST_ALARMS = 20

/** Arguments that can be used, or what is wrong with them. */
export type ReadArguments = { readonly args: Record<string, unknown> } | { readonly problem: string }

/** A schema to be judged by. */
export interface Rule {
  readonly schema: JsonSchema
  /** Who wrote it. Patterns are only run where that is the host, who might as well write code. Security: 2.6. */
  readonly origin: ServerTool['origin'] | 'agent'
}

/** Reads the arguments of a call; the first thing wrong with them is named with its place. */
export function readArguments(text: string, rules: readonly Rule[]): ReadArguments {
  if (Buffer.byteLength(text) > MOST_BYTES) return { problem: 'they are larger than 256 KiB' }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problem: 'they are not valid JSON' }
  }
  if (!isJsonObject(value)) return { problem: 'they must be a JSON object' }
  const problem = findShapeProblem(value) ?? findRuleProblem(value, rules)
  return problem === undefined ? { args: value } : { problem }
}

/** What a handler should not have to reckon with, whatever its schema says. */
function findShapeProblem(value: unknown, depth = 1): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > DEEPEST) return `they are nested deeper than ${DEEPEST}`
  if (Object.hasOwn(value, '__proto__')) return 'they have the key __proto__'
  for (const child of Object.values(value)) {
    const problem = findShapeProblem(child, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

function findRuleProblem(value: unknown, rules: readonly Rule[]): string | undefined {
  for (const rule of rules) {
    const problem = judge(value, rule)
    if (problem !== undefined) return problem
  }
  return undefined
}

function judge(value: unknown, rule: Rule): string | undefined {
  const check = checkOf(rule)
  if (check.isTooSlow) return 'they cannot be checked: their schema takes too long'
  try {
    if (check.validate === undefined || runInTime(check.validate, value)) return undefined
  } catch (error) {
    // A schema can also refer to itself without end.
    if (!isTimeout(error)) return 'they cannot be checked by their schema'
    // Others may use the tools of the host and of MCP servers too, so whatever one caller sends, they stay.
    check.isTooSlow = rule.origin === 'agent'
    return 'they cannot be checked in time'
  }
  const fault = check.validate.errors?.[0]
  return fault === undefined ? 'they do not fit the schema' : describe(fault)
}

interface Check {
  /** Undefined where the schema cannot be judged by. */
  readonly validate: ValidateFunction | undefined
  isTooSlow: boolean
}

/** Made at a schema's first use, and forgotten with it. */
const checks = new WeakMap<JsonSchema, Check>()

function checkOf({ schema, origin }: Rule): Check {
  const known = checks.get(schema)
  if (known !== undefined) return known
  const validate = origin === 'host' ? compileSchema(schema) : tryCompile(withoutPatterns(schema))
  const check = { validate, isTooSlow: false }
  checks.set(schema, check)
  return check
}

/** What was valid with its patterns need not be without them. */
function tryCompile(schema: JsonSchema): ValidateFunction | undefined {
  try {
    return compileSchema(schema)
  } catch {
    return undefined
  }
}

/** The judge of a schema. @throws Error when values cannot be judged by it. */
export function compileSchema({ $schema: dialect, ...schema }: JsonSchema): ValidateFunction {
  // One for each schema: it keeps what it compiles.
  const ajv = dialectOf(dialect) === 'draft-07' ? new Ajv(options) : new Ajv2020(options)
  return ajv.compile({ type: 'object', ...schema })
}

const options: Options = {
  strict: false,
  logger: false,
  meta: false,
  validateSchema: false,
  validateFormats: false,
  // Every use of a definition would otherwise be a copy of its code.
  inlineRefs: false,
  code: { regExp: Object.assign((source: string) => toRegExp(source) ?? /(?:)/, { code: '' }) },
}

interface Sandbox {
  validate?: ValidateFunction
  value?: unknown
}

/** Made at the first need: a start has no use for it. */
let sandbox: Sandbox | undefined
const judging = new Script('validate(value)')

/** Node stops a script that takes too long, and with it the functions of ours that it calls. */
function runInTime(validate: ValidateFunction, value: unknown): boolean {
  sandbox ??= createContext(Object.create(null))
  Object.assign(sandbox, { validate, value })
  try {
    return ringing(sandbox)
  } finally {
    Object.assign(sandbox, { validate: undefined, value: undefined })
  }
}

function ringing(context: Sandbox): boolean {
  for (let alarms = 1; ; alarms++) {
    const before = process.threadCpuUsage()
    try {
      return judging.runInContext(context, { timeout: ALARM_MS })
    } catch (error) {
      const { user, system } = process.threadCpuUsage(before)
      if (!isTimeout(error) || (user + system) / 1000 >= MOST_CPU_MS || alarms === MOST_ALARMS) throw error
    }
  }
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

function describe({ keyword, instancePath, params, message }: ErrorObject): string {
  const place = renderPath(instancePath.split('/').slice(1).map(unescapePointer).map(toSegment))
  const said = keyword === 'enum' ? `must be one of ${params.allowedValues.join(', ')}` : message
  const extra = keyword === 'additionalProperties' ? ` ('${params.additionalProperty}')` : ''
  return `${place === '' ? '' : `${place} `}${said ?? 'does not fit the schema'}${extra}`
}

function toSegment(segment: string): string | number {
  return /^\d+$/.test(segment) ? Number(segment) : segment
}
