/** Shares text with the page, through the browser's share dialog, or by copying it. */
import type { FrameMessage } from '../messages.ts'
import { type FrameOptions, hasCallback } from '../options.ts'
import { copyText } from './copy-text.ts'

type Share = Extract<FrameMessage, { type: 'share' }>

export type ShareOutcome = 'shared' | 'copied' | 'failed'

/** The recipient of shared text: the page, another app that the browser offers, or the clipboard. */
export type ShareTarget = 'page' | 'app' | 'clipboard'

/** Returns the best target that exists. Older pages do not report whether they receive shared text. */
export function findShareTarget(options: FrameOptions | undefined): ShareTarget {
  if (options !== undefined && hasCallback(options, 'onUserShare')) return 'page'
  return navigator.canShare?.({ text: ' ' }) === true ? 'app' : 'clipboard'
}

export function createSharing(post: (message: Share) => void, getTarget: () => ShareTarget) {
  /** The page responds in the order of the requests. */
  const waiting: ((isReceived: boolean) => void)[] = []

  async function copy(text: string): Promise<ShareOutcome> {
    return (await copyText(text)) ? 'copied' : 'failed'
  }

  async function shareWithPage(kind: Share['kind'], text: string): Promise<ShareOutcome> {
    const isReceived = await new Promise<boolean>((resolve) => {
      waiting.push(resolve)
      post({ type: 'share', kind, text })
    })
    return isReceived ? 'shared' : copy(text)
  }

  /** Also returns `failed` if the visitor cancels the browser's dialog. */
  async function shareWithApp(text: string): Promise<ShareOutcome> {
    try {
      await navigator.share({ text })
      return 'shared'
    } catch {
      return 'failed'
    }
  }

  return {
    share(kind: Share['kind'], text: string): Promise<ShareOutcome> {
      const target = getTarget()
      if (target === 'page') return shareWithPage(kind, text)
      return target === 'app' ? shareWithApp(text) : copy(text)
    },
    settle: (isReceived: boolean) => waiting.shift()?.(isReceived),
  }
}
