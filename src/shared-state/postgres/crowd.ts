/** Sends hits on the same windows together that come while others are on their way: all of them wait for the same rows. */
import type { Quota, WindowCount } from '../limiter.ts'

/** What many hits came to: each window as it was, and how many of the hits it and all others had room for. */
export interface CountedHits {
  readonly windows: readonly { readonly before: number; readonly leftMs: number }[]
  readonly counted: number
}

interface Waiting {
  resolve(counts: readonly WindowCount[]): void
  reject(error: unknown): void
}

/** Counts one hit in each window, or in none; `count` does that for many at once, and is called for one crowd at a time. */
export function gatherHits(
  count: (quotas: readonly Quota[], hits: number) => Promise<CountedHits>,
): (quotas: readonly Quota[]) => Promise<readonly WindowCount[]> {
  const crowds = new Map<string, Waiting[]>()

  async function send(name: string, quotas: readonly Quota[], waiting: Waiting[]): Promise<void> {
    while (waiting.length > 0) {
      const crowd = waiting.splice(0)
      try {
        const { windows, counted } = await count(quotas, crowd.length)
        for (const [place, { resolve }] of crowd.entries()) {
          // Those for whom there was no room are told what the windows would have been with them.
          const hits = Math.min(place, counted) + 1
          resolve(windows.map(({ before, leftMs }) => ({ count: before + hits, leftMs })))
        }
      } catch (error) {
        for (const { reject } of crowd) reject(error)
      }
    }
    crowds.delete(name)
  }

  return (quotas) =>
    new Promise((resolve, reject) => {
      const name = JSON.stringify(quotas)
      const waiting = crowds.get(name)
      if (waiting !== undefined) return void waiting.push({ resolve, reject })
      const first = [{ resolve, reject }]
      crowds.set(name, first)
      void send(name, quotas, first)
    })
}
