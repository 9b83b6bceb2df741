/** Reads price lists: the list in `prices/prices.json`, or another file in the same format. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { StartupError } from '../lib/errors.ts'
import { renderPath } from '../lib/formats/json.ts'
import { PriceEntries, type PriceEntry } from './schema.ts'

/** The list that `scripts/write-prices.ts` generates. */
export const SHIPPED_PRICES = fileURLToPath(new URL('../../prices/prices.json', import.meta.url))

const pattern = z.string().refine((text) => {
  try {
    return new RegExp(text) instanceof RegExp
  } catch {
    return false
  }
}, 'must be a regular expression')

const Vendor = z.strictObject({
  /** Matches the start of the base URLs of the vendor's API. */
  url: pattern,
  /** Entries by model id; a string is another id with the same price. */
  models: z.record(z.string(), z.union([z.string(), PriceEntries])),
})

export const PriceList = z
  .strictObject({
    source: z.string(),
    version: z.string(),
    /** Date of the version. */
    date: z.iso.date(),
    vendors: z.record(z.string(), Vendor),
  })
  .superRefine(({ vendors }, context) => {
    for (const [vendor, { models }] of Object.entries(vendors))
      for (const [model, entries] of Object.entries(models)) {
        if (typeof entries !== 'string' || Array.isArray(models[entries])) continue
        const path = ['vendors', vendor, 'models', model]
        context.addIssue({ code: 'custom', path, message: 'must be an id in `models` that has entries' })
      }
  })
export type PriceList = z.infer<typeof PriceList>

/** Reads another list. @throws StartupError if the file cannot be read or has an error. */
export function readPriceList(path: string): PriceList {
  try {
    return PriceList.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch (cause) {
    const [issue] = cause instanceof z.ZodError ? cause.issues : []
    const problem =
      issue === undefined ? 'cannot be read as JSON' : `${renderPath(issue.path)} ${issue.message}`
    throw new StartupError(`PARLEY_PRICES: ${path}: ${problem}.`, { cause })
  }
}

/** Reads the shipped list. Tests check its contents, so that the server does not need to. */
export function readShippedPrices(): PriceList {
  return JSON.parse(readFileSync(SHIPPED_PRICES, 'utf8'))
}

/** Returns the vendor whose API has this base URL. */
export function findVendor({ vendors }: PriceList, url: string): string | undefined {
  const found = Object.entries(vendors).find(([, vendor]) => new RegExp(`^(?:${vendor.url})`).test(url))
  return found?.[0]
}

/** Returns the entries of a vendor's model. Compares ids exactly, so that no model gets another one's price. */
export function findEntries(
  { vendors }: PriceList,
  vendorName: string,
  model: string,
): readonly PriceEntry[] | undefined {
  const vendor = Object.hasOwn(vendors, vendorName) ? vendors[vendorName] : undefined
  if (vendor === undefined || !Object.hasOwn(vendor.models, model)) return undefined
  const found = vendor.models[model]
  const entries = typeof found === 'string' ? vendor.models[found] : found
  return Array.isArray(entries) ? entries : undefined
}
