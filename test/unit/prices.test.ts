/** Tests price entries, the price list, and the order in which prices are looked up. */
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { costOf, noTokens, readTokens } from '../../src/prices/cost.ts'
import {
  findEntries,
  findVendor,
  PriceList,
  readShippedPrices,
  SHIPPED_PRICES,
} from '../../src/prices/list.ts'
import { createPriceBook, type PricedProvider } from '../../src/prices/lookup.ts'
import { renderAmount } from '../../src/prices/money.ts'
import { PriceEntries, PriceEntry } from '../../src/prices/schema.ts'

const priced = (given: object) => ({ id: 'a', source: 'config' as const, entry: PriceEntry.parse(given) })
const at = (text: string) => Date.parse(text)
const NOW = at('2026-11-20T12:00:00Z')

function priceOf(given: object, tokens: object, context: object = {}) {
  const cost = costOf(priced(given), { ...noTokens, ...tokens }, { atMs: NOW, ...context })
  return cost === undefined ? undefined : renderAmount(cost.total)
}

describe('a price entry', () => {
  test('keeps amounts as canonical text', () => {
    const entry = PriceEntry.parse({ per_million: { input: 0.25, output: '2.50' }, per_call: 0 })
    expect(entry).toEqual({ per_million: { input: '0.25', output: '2.5' }, per_call: '0' })
  })

  test.each([
    [{}, 'per_million'],
    [{ per_million: {} }, 'per_million.input'],
    [{ per_million: { input: -1 } }, 'per_million.input'],
    [{ per_million: { input: 1 }, since: '2026-02-30' }, 'since'],
    [{ per_million: { input: 1 }, since: '1 May' }, 'since'],
    [{ per_million: { input: 1 }, tiers: { flex: 0 } }, 'tiers.flex'],
    [
      { per_million: { input: 1 }, windows: [{ from: '24:00', to: '01:00', per_million: {} }] },
      'windows.0.from',
    ],
    [
      { per_million: { input: 1 }, windows: [{ from: '01:00', to: '01:00', per_million: {} }] },
      'windows.0.to',
    ],
    [
      {
        per_million: { input: 1 },
        above: [
          { input_tokens: 5, per_million: {} },
          { input_tokens: 5, per_million: {} },
        ],
      },
      'above',
    ],
  ])('is rejected with the path of its error: %j', (given, path) => {
    expect(PriceEntry.safeParse(given).error?.issues.map((issue) => issue.path.join('.'))).toContain(path)
  })

  test('may not have the same date twice', () => {
    const entry = { since: '2026-01-01', per_million: { input: 1 } }
    expect(PriceEntries.safeParse([entry, { ...entry, since: '2026-01-01T00:00:00Z' }]).success).toBe(false)
  })
})

describe('the cost of a call', () => {
  const entry = {
    per_million: { input: 0.25, cached_input: 0.025, cache_write: 0.3125, output: 2, input_audio: 10 },
    above: [{ input_tokens: 271_999, per_million: { input: 0.5, output: 3 } }],
    tiers: { priority: 2, flex: 0.5 },
    windows: [{ from: '16:30', to: '00:30', per_million: { input: 0.125 } }],
  }

  test('counts cached, written and audio tokens at their rates', () => {
    const tokens = { prompt: 1000, completion: 100, cached: 600, cacheWrite: 100, audioInput: 50 }
    expect(priceOf(entry, tokens)).toBe('0.00080875')
  })

  test('uses the rates of a step for the whole request', () => {
    expect(priceOf(entry, { prompt: 271_999 })).toBe('0.06799975')
    expect(priceOf(entry, { prompt: 272_000, completion: 10 })).toBe('0.13603')
  })

  test('uses the rates of a window that spans midnight', () => {
    const prompt = 1_000_000 / 4
    const costAt = (time: string) => priceOf(entry, { prompt }, { atMs: at(`2026-11-20T${time}Z`) })
    expect(['16:29:59', '16:30:00', '00:29:59', '00:30:00'].map(costAt)).toEqual([
      ...['0.0625', '0.03125', '0.03125', '0.0625'],
    ])
  })

  test("multiplies the rates by the service tier's factor, or by the highest factor if the tier is unknown", () => {
    const costIn = (tier: string | null) => priceOf(entry, { completion: 1_000_000 }, { tier })
    expect([null, 'default', 'flex', 'priority', 'other'].map(costIn)).toEqual(['2', '2', '1', '4', '4'])
  })

  test('is undefined if the price has no rate for the answer', () => {
    const embeddings = { per_million: { input: 0.1 } }
    expect(priceOf(embeddings, { prompt: 10 })).toBe('0.000001')
    expect(priceOf(embeddings, { prompt: 10, completion: 1 })).toBeUndefined()
    expect(priceOf(embeddings, {}, { webSearches: 1 })).toBeUndefined()
  })
})

describe('reported usage', () => {
  test('is read from the fields of different providers', () => {
    const usage = { prompt_tokens: 10, completion_tokens: 5 }
    const openai = { ...usage, prompt_tokens_details: { cached_tokens: 4, audio_tokens: 1 } }
    expect(readTokens(openai)).toMatchObject({ prompt: 10, completion: 5, cached: 4, audioInput: 1 })
    expect(readTokens({ ...usage, prompt_cache_hit_tokens: 3 })).toMatchObject({ cached: 3 })
    expect(readTokens({ ...usage, cache_creation_input_tokens: 2 })).toMatchObject({ cacheWrite: 2 })
    expect(readTokens({ prompt_tokens: 7, total_tokens: 7 })).toMatchObject({ prompt: 7, completion: 0 })
  })

  test.each([undefined, null, 'x', {}, { prompt_tokens: -1, completion_tokens: 1 }, { prompt_tokens: '12' }])(
    'is rejected if it is %j',
    (usage) => {
      expect(readTokens(usage)).toBeUndefined()
    },
  )

  test('counts details that are not numbers of tokens as 0', () => {
    const details = { cached_tokens: '5', audio_tokens: -1, image_tokens: 1e308 }
    const usage = { prompt_tokens: 1, completion_tokens: 1, prompt_tokens_details: details }
    expect(readTokens(usage)).toEqual({ ...noTokens, prompt: 1, completion: 1 })
  })
})

describe('the shipped price list', () => {
  const list = readShippedPrices()

  test('is valid, in canonical form, and has no price of zero', async () => {
    expect(PriceList.parse(JSON.parse(await readFile(SHIPPED_PRICES, 'utf8')))).toEqual(list)
    const amounts = JSON.stringify(list).match(/"(input|output)":"[^"]+"/g) ?? []
    expect(amounts.length).toBeGreaterThan(1_000)
    expect(amounts.filter((amount) => amount.endsWith(':"0"'))).toEqual([])
  })

  test.each([
    ['https://api.openai.com/v1', 'openai'],
    ['https://api.anthropic.com/v1', 'anthropic'],
    ['https://generativelanguage.googleapis.com/v1beta/openai', 'google'],
    ['https://openrouter.ai/api/v1', 'openrouter'],
    ['https://mine.openai.azure.com/openai/v1', 'azure'],
    ['http://127.0.0.1:8000/v1', undefined],
  ])('assigns %s to the vendor %s', (url, vendor) => {
    expect(findVendor(list, url)).toBe(vendor)
  })

  test('contains prices only for exact ids', () => {
    expect(findEntries(list, 'openai', 'gpt-4o')?.[0]?.per_million).toEqual({
      input: '2.5',
      cached_input: '1.25',
      output: '10',
    })
    expect(findEntries(list, 'openai', 'gpt-4o-2024-11-20')).toEqual(findEntries(list, 'openai', 'gpt-4o'))
    expect(findEntries(list, 'openai', 'gpt-4o-2099-01-01')).toBeUndefined()
    expect(findEntries(list, 'openai', 'GPT-4o')).toBeUndefined()
    expect(findEntries(list, 'openai', 'constructor')).toBeUndefined()
    expect(findEntries(list, 'anthropic', 'gpt-4o')).toBeUndefined()
  })
})

describe('the price of a model', () => {
  const configured = PriceEntries.parse([
    { per_million: { input: 3, output: 3 } },
    { since: '2026-11-20', per_million: { input: 2, output: 2 } },
  ])
  const providers: Record<string, PricedProvider> = {
    far: { kind: 'gateway', url: 'https://api.openai.com/v1' },
    proxy: { kind: 'gateway', url: 'https://proxy.example/v1', vendor: 'openai' },
    near: { kind: 'local', url: 'http://127.0.0.1:11434/v1' },
    mock: { kind: 'mock' },
    other: { kind: 'gateway', url: 'https://other.example/v1' },
  }
  const book = createPriceBook({
    findOverride: () => undefined,
    findProvider: (name) => providers[name],
    configured: { 'far/gpt-4o': configured },
    list: readShippedPrices,
  })
  const found = (provider: string, model: string, atMs = NOW) => {
    const price = book.find(provider, model, atMs)
    return price && [price.source, price.entry.per_million.input]
  }

  test('comes from the configuration, by date, and otherwise from the shipped list', () => {
    expect(found('far', 'gpt-4o')).toEqual(['config', '2'])
    expect(found('far', 'gpt-4o', at('2026-11-19T23:59:59.999Z'))).toEqual(['config', '3'])
    expect(found('far', 'gpt-4o-2024-11-20')).toEqual(['shipped', '2.5'])
    expect(found('proxy', 'gpt-4o')).toEqual(['shipped', '2.5'])
  })

  test('is undefined for unknown models and vendors, and free for local models', () => {
    expect(found('far', 'gpt-4o-2099-01-01')).toBeUndefined()
    expect(found('other', 'gpt-4o')).toBeUndefined()
    expect(found('gone', 'gpt-4o')).toBeUndefined()
    expect([found('near', 'llama3'), found('mock', 'mock')]).toEqual([
      ['free', '0'],
      ['free', '0'],
    ])
  })

  test('has the same id as every equal entry', () => {
    const first = book.find('far', 'gpt-4o-2024-11-20', NOW)
    expect(first?.id).toMatch(/^[0-9a-f]{64}$/)
    expect(book.find('proxy', 'gpt-4o', NOW)?.id).toBe(first?.id)
  })
})
