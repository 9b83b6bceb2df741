/** Checks that a tool call's arguments are JSON and match the tool's schema. */
import { createContext, Script } from 'node:vm'
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isJsonObject, parseJson, renderPath } from '../lib/formats/json.ts'
import {
  dialectOf,
  type JsonSchema,
  toRegExp,
  unescapePointer,
  withoutPatterns,
} from '../lib/formats/json-schema.ts'
import type { ServerTool } from './tools.ts'

const MAX_BYTES = 256 * 1024
const MAX_DEPTH = 64
/**
 * Limits the CPU time of one validation, because references and patterns can make even a short schema take
 * years.
 */
const MAX_CPU_MS = 50
/**
 * Wall-clock timeout of one attempt. An attempt that used less CPU time is repeated, because other processes
 * may have used most of the wall-clock time.
 */
const TIMEOUT_MS = 100
const MAX_TIMEOUTS = 20

export type ReadArguments = { readonly args: Record<string, unknown> } | { readonly problem: string }

export interface Rule {
  readonly schema: JsonSchema
  /**
   * The schema's author. Patterns run only in the host's schemas, because the host can run any code anyway.
   */
  readonly origin: ServerTool['origin'] | 'agent'
}

export function readArguments(text: string, rules: readonly Rule[]): ReadArguments {
  if (Buffer.byteLength(text) > MAX_BYTES) return { problem: 'they are larger than 256 KiB' }
  const value = parseJson(text)
  if (value === undefined) return { problem: 'they are not valid JSON' }
  if (!isJsonObject(value)) return { problem: 'they must be a JSON object' }
  let problem = findShapeProblem(value)
  for (const rule of rules) problem ??= findMisfit(value, rule)
  return problem === undefined ? { args: value } : { problem }
}

/** Returns why a tool must never receive the value, even if its schema allows it; undefined if it may. */
function findShapeProblem(value: unknown, depth = 1): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (depth > MAX_DEPTH) return `they are nested deeper than ${MAX_DEPTH} levels`
  if (Object.hasOwn(value, '__proto__')) return 'they contain the key __proto__'
  for (const child of Object.values(value)) {
    const problem = findShapeProblem(child, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

function findMisfit(value: unknown, rule: Rule): string | undefined {
  const check = checkOf(rule)
  if (check.isTooSlow)
    return 'they cannot be checked, because validating them against the schema takes too long'
  try {
    if (check.validate === undefined || runInTime(check.validate, value)) return undefined
  } catch (error) {
    // Handles other errors, such as a stack overflow in a schema that refers to itself endlessly.
    if (!isTimeout(error)) return 'the schema cannot be evaluated'
    // Disables only agents' schemas. All tenants share the schemas of the host and of MCP servers, so one
    // tenant must not disable them for the others.
    check.isTooSlow = rule.origin === 'agent'
    return 'validating them against the schema timed out'
  }
  const fault = check.validate.errors?.[0]
  return fault === undefined ? 'they do not match the schema' : describe(fault)
}

interface Check {
  readonly validate: ValidateFunction | undefined
  isTooSlow: boolean
}

const checks = new WeakMap<JsonSchema, Check>()

function checkOf({ schema, origin }: Rule): Check {
  const known = checks.get(schema)
  if (known !== undefined) return known
  const validate = origin === 'host' ? compileSchema(schema) : tryCompile(withoutPatterns(schema))
  const check = { validate, isTooSlow: false }
  checks.set(schema, check)
  return check
}

function tryCompile(schema: JsonSchema): ValidateFunction | undefined {
  try {
    return compileSchema(schema)
  } catch {
    return undefined
  }
}

export function compileSchema({ $schema: dialect, ...schema }: JsonSchema): ValidateFunction {
  // Creates a new instance for each schema, because an instance keeps everything that it compiles in memory.
  const ajv = dialectOf(dialect) === 'draft-07' ? new Ajv(options) : new Ajv2020(options)
  return ajv.compile({ type: 'object', ...schema })
}

const options: Options = {
  strict: false,
  logger: false,
  meta: false,
  validateSchema: false,
  validateFormats: false,
  // Inlining would copy a definition's code to every place that refers to it.
  inlineRefs: false,
  code: { regExp: Object.assign((source: string) => toRegExp(source) ?? /(?:)/, { code: '' }) },
}

const validation = new Script('validate(value)')
/** Created on first use, because startup does not need it. */
let sandbox: { validate?: ValidateFunction | undefined; value?: unknown } | undefined

/** Runs the validation in a script, because Node can stop a script that takes too long. */
function runInTime(validate: ValidateFunction, value: unknown): boolean {
  sandbox ??= createContext(Object.create(null))
  Object.assign(sandbox, { validate, value })
  try {
    for (let timeouts = 1; ; timeouts++) {
      const before = process.threadCpuUsage()
      try {
        return validation.runInContext(sandbox, { timeout: TIMEOUT_MS })
      } catch (error) {
        const { user, system } = process.threadCpuUsage(before)
        const isOverLimit = (user + system) / 1000 >= MAX_CPU_MS || timeouts === MAX_TIMEOUTS
        if (!isTimeout(error) || isOverLimit) throw error
      }
    }
  } finally {
    Object.assign(sandbox, { validate: undefined, value: undefined })
  }
}

function isTimeout(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

function describe({ keyword, instancePath, params, message }: ErrorObject): string {
  const place = renderPath(
    instancePath
      .split('/')
      .slice(1)
      .map(unescapePointer)
      .map((key) => (/^\d+$/.test(key) ? Number(key) : key)),
  )
  const said = keyword === 'enum' ? `must be one of ${params.allowedValues.join(', ')}` : message
  const extra = keyword === 'additionalProperties' ? ` ('${params.additionalProperty}')` : ''
  return `${place === '' ? '' : `${place} `}${said ?? 'does not match the schema'}${extra}`
}
