/** Explains why a turn has no complete answer. */
import { t } from '../strings/language.ts'
import type { Turn } from './queries.ts'

const reasons: Readonly<Record<string, string>> = {
  max_output_tokens: t('conversations.tokenLimit'),
  content_filter: t('conversations.contentFilter'),
  interrupted: t('conversations.interrupted'),
}

/** Explains why a turn has no complete answer; undefined for a complete or running turn. */
export function explain({ status, reason, error_code: code }: Turn): string | undefined {
  if (status === 'failed')
    return code === null ? t('conversations.turnFailed') : t('conversations.turnFailedCode', { code })
  if (status === 'cancelled')
    return reason === 'taken_over' ? t('conversations.wasTakenOver') : t('conversations.wasCancelled')
  if (status !== 'incomplete') return undefined
  if (code !== null) return t('conversations.cutOffCode', { code })
  return reasons[reason ?? ''] ?? t('conversations.isIncomplete')
}
