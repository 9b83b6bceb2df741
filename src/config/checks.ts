/** What is wrong with settings that are each right by themselves, and what an operator should be told of the others. */

import { nearestName } from '../lib/nearest-name.ts'
import { type Environment, knownNames } from './environment.ts'
import { type Given, keepsRows, toForwardedHeaders } from './to-config.ts'

/** One sentence for each setting that is missing, or is there too often. */
export function listGivenProblems(given: Given): string[] {
  return [...missing(given), ...ambiguous(given)]
}

/** What an operator should be told at start. */
export function listNotices(given: Given): Notice[] {
  return [...unknownNames(given), ...unusedNames(given), ...keptNowhere(given)]
}

function missing(given: Given): string[] {
  return given.PARLEY_BACKEND === 'gateway' && given.PARLEY_GATEWAY_URL === undefined
    ? ['PARLEY_GATEWAY_URL is missing; PARLEY_BACKEND=gateway needs it.']
    : []
}

function ambiguous(given: Given): string[] {
  const { PARLEY_BACKEND: backend, PARLEY_LOCAL_URL: url, PARLEY_LOCAL_MODEL: model } = given
  return backend === 'local' && url !== undefined && model !== undefined
    ? ['PARLEY_LOCAL_URL and PARLEY_LOCAL_MODEL are both set; keep one of them.']
    : []
}

/** One sentence for each way in which a proxy could not be believed. */
export function listForwardingProblems(given: Environment): string[] {
  if (!given.PARLEY_TRUST_FORWARDED_AUTH) return []
  const names = Object.values(toForwardedHeaders(given))
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  const isBounded = given.PARLEY_PROXY_SECRET !== undefined || given.PARLEY_TRUSTED_PROXIES !== undefined
  return [
    ...(isBounded
      ? []
      : [
          'PARLEY_TRUST_FORWARDED_AUTH needs PARLEY_PROXY_SECRET or PARLEY_TRUSTED_PROXIES; without either, anybody could say who they are.',
        ]),
    ...(twice === undefined ? [] : [`Two of the PARLEY_HEADER_ settings name the same header, ${twice}.`]),
  ]
}

/** What an operator should be told of a variable. */
export interface Notice {
  readonly name: string
  readonly notice: string
}

function unknownNames(given: Given): Notice[] {
  return Object.keys(given)
    .filter((name) => name.startsWith('PARLEY_') && !knownNames.includes(name))
    .map((name) => ({
      name,
      notice: `${name} is not a setting and is ignored; the nearest is ${nearestName(name, knownNames)}.`,
    }))
}

/** Settings that another one switches on, with that value or, where none is named, with any. */
const dependents: readonly [names: RegExp, name: keyof Environment, value?: string][] = [
  [/^PARLEY_GATEWAY_/, 'PARLEY_BACKEND', 'gateway'],
  [/^PARLEY_LOCAL_(URL|MODEL)/, 'PARLEY_BACKEND', 'local'],
  [/^PARLEY_LOCAL_(THREADS|CONTEXT)/, 'PARLEY_LOCAL_MODEL'],
  [/^PARLEY_(PROXY_SECRET|HEADER_|ADMIN_EMAILS)/, 'PARLEY_TRUST_FORWARDED_AUTH', 'true'],
  [/^S3_/, 'S3_BUCKET'],
]

function unusedNames(given: Given): Notice[] {
  return dependents
    .filter(([, name, value]) => given[name] === undefined || (value !== undefined && given[name] !== value))
    .flatMap(([names, needed, value]) =>
      Object.keys(given)
        .filter((name) => names.test(name) && knownNames.includes(name))
        .map((name) => ({
          name,
          notice: `${name} is not used: it needs ${value === undefined ? needed : `${needed}=${value}`}.`,
        })),
    )
}

/** Bytes whose rows go with the process would be nobody's afterwards. */
function keptNowhere(given: Given): Notice[] {
  if (keepsRows(given) || given.S3_BUCKET === undefined) return []
  return [{ name: 'S3_BUCKET', notice: 'S3_BUCKET is not used: PARLEY_DATA_DIR=:memory: keeps nothing.' }]
}
