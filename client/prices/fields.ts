/** Converts prices between the entries of the API and the fields of the form. */
import type { Outputs } from '../api.ts'

export type Price = Outputs['prices']['list']['data'][number]
export type PriceEntry = NonNullable<Price['entry']>

export const rateFields = ['input', 'output', 'cached_input', 'cache_write'] as const
export const feeFields = ['per_call', 'per_image', 'per_web_search'] as const
export type AmountField = (typeof rateFields)[number] | (typeof feeFields)[number]

export interface PriceFields {
  readonly amounts: Readonly<Partial<Record<AmountField, string>>>
  /** A date or a time in UTC, as text; empty if the price always applies. */
  readonly since: string
}

export const noFields: PriceFields = { amounts: {}, since: '' }

/** Returns the rate of an entry as decimal text. */
export function rateOf(entry: PriceEntry, name: string): string | undefined {
  const { [name]: rate } = (entry.per_million ?? {}) as Readonly<Record<string, string>>
  return rate
}

/** Returns the fields of an entry; undefined if the form does not have all of its fields. */
export function toFields(entry: PriceEntry): PriceFields | undefined {
  const { per_million: rates = {}, since = '', ...fees } = entry as Readonly<Record<string, unknown>>
  const amounts = { ...(rates as object), ...fees }
  const isKnown = (name: string) => [...rateFields, ...feeFields].some((known) => known === name)
  return Object.keys(amounts).every(isKnown) ? { amounts, since: String(since) } : undefined
}

/** Returns the entry for the fields; empty fields are absent. */
export function toEntry({ amounts, since }: PriceFields): PriceEntry {
  const select = (names: readonly AmountField[]) =>
    Object.fromEntries(
      names.flatMap((name) => {
        const amount = toDecimal(amounts[name])
        return amount === '' ? [] : [[name, amount]]
      }),
    )
  return {
    per_million: select(rateFields),
    ...select(feeFields),
    ...(since.trim() === '' ? {} : { since: since.trim() }),
  }
}

/** Accepts a decimal comma, which several languages use. */
function toDecimal(text = ''): string {
  return text.trim().replace(',', '.')
}

const MOST_USD = 1_000_000

/** Whether the text is an amount that the server accepts; also true for empty text. */
export function isAmount(text: string | undefined): boolean {
  const decimal = toDecimal(text)
  return decimal === '' || (/^\d{1,7}(\.\d{1,9})?$/.test(decimal) && Number(decimal) <= MOST_USD)
}

/** Returns the invalid field that an error of the server names, such as `per_million.input`. */
export function fieldOf(param: string | undefined): AmountField | 'since' | 'provider' | 'model' | undefined {
  const name = param?.replace(/^per_million\./, '').replace(/^per_million$/, 'input')
  const known = [...rateFields, ...feeFields, 'since', 'provider', 'model'] as const
  return known.find((field) => field === name)
}

/** Parses the JSON text of an entry or a list of entries; undefined if it is neither. */
export function parsePrices(text: string): PriceEntry | readonly PriceEntry[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as PriceEntry) : undefined
  } catch {
    return undefined
  }
}
