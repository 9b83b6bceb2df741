/** Shows the form that raises the limit of a budget, or corrects what it has booked. */
import { Text, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api.ts'
import { DialogForm } from '../components/Dialog.tsx'
import { toFailure } from '../failure.ts'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { AmountField } from './AmountField.tsx'
import { type Budget, refreshBudgets } from './queries.ts'

interface EntryFormProps {
  readonly kind: 'raise' | 'correct'
  readonly budget: Budget
  /** Pseudonym of a visitor or conversation, for a budget with this scope. */
  readonly subject?: string | undefined
  readonly onClose: () => void
}

const MAX_REASON_LENGTH = 500

const texts = {
  raise: {
    about: 'budgets.raiseHelp',
    hint: 'budgets.reasonHint',
    action: 'budgets.raise',
    done: 'budgets.raised',
  },
  correct: {
    about: 'budgets.correctHelp',
    hint: 'budgets.correctHint',
    action: 'budgets.correct',
    done: 'budgets.corrected',
  },
} as const

export function EntryForm({ kind, budget: { id, unit }, subject, onClose }: EntryFormProps) {
  const queries = useQueryClient()
  const [amount, setAmount] = useState<number | string>('')
  const [reason, setReason] = useState('')
  const [expires, setExpires] = useState('')
  const [error, setError] = useState<{ readonly field: string; readonly message: string }>()
  const errorOf = (field: string) => (error?.field === field ? error.message : undefined)
  const isRaise = kind === 'raise'
  const { about, hint, action, done } = texts[kind]
  const submit = async () => {
    if (amount === '') return setError({ field: 'amount', message: t('budgets.limitMissing') })
    const entry = { budget_id: id, amount, reason: reason.trim(), subject: subject ?? null }
    try {
      if (isRaise) await api.budgets.grant.mutate({ ...entry, expires_at: toSeconds(expires) })
      else await api.budgets.adjust.mutate(entry)
    } catch (thrown) {
      const { param, message } = toFailure(thrown)
      if (param === undefined || !fields.includes(param)) throw thrown
      return setError({ field: param, message: message.replace(`${param}: `, '') })
    }
    await refreshBudgets(queries)
    showDone(t(done))
    onClose()
  }
  return (
    <DialogForm onSubmit={submit} onCancel={onClose} action={t(action)} isReady={reason.trim() !== ''}>
      <Text size="sm" c="dimmed">
        {t(about)}
      </Text>
      <AmountField
        label={t('budgets.amount')}
        unit={unit}
        value={amount}
        error={errorOf('amount')}
        isSigned={!isRaise}
        isFirst
        onChange={(value) => {
          setAmount(value)
          setError(undefined)
        }}
      />
      <TextInput
        label={t('budgets.reason')}
        placeholder={t(hint)}
        required
        maxLength={MAX_REASON_LENGTH}
        autoComplete="off"
        value={reason}
        error={errorOf('reason')}
        onChange={({ currentTarget: { value } }) => setReason(value)}
      />
      {isRaise ? (
        <TextInput
          type="datetime-local"
          label={t('budgets.expires')}
          description={t('budgets.expiresHelp')}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          value={expires}
          error={errorOf('expires_at')}
          onChange={({ currentTarget: { value } }) => {
            setExpires(value)
            setError(undefined)
          }}
        />
      ) : null}
    </DialogForm>
  )
}

const fields = ['amount', 'reason', 'expires_at']

/** Converts a local date and time to Unix seconds; null for an empty string. */
function toSeconds(local: string): number | null {
  return local === '' ? null : Math.floor(new Date(local).getTime() / 1_000)
}
