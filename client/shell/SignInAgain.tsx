/** Asks to sign in again above the page on which somebody was at work: what they typed stays, and goes on. Decision: 10. */
import { Code, Stack, Text, TextInput } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react'
import { api } from '../api.ts'
import { Dialog } from '../components/Dialog.tsx'
import { DialogForm } from '../components/DialogForm.tsx'
import { toFailure } from '../failure.ts'
import {
  announceSignIn,
  forgetSessionEnd,
  hasSessionEnded,
  onSessionChange,
  onSignInElsewhere,
} from '../session.ts'
import { secretOf } from '../sign-in-link.ts'
import { meQuery, useMe } from './use-me.ts'

export function SignInAgain() {
  const hasEnded = useSyncExternalStore(onSessionChange, hasSessionEnded)
  return (
    <Dialog title="You are signed out" isOpen={hasEnded} onClose={forgetSessionEnd} isAboveAll>
      <SignInForm />
    </Dialog>
  )
}

function SignInForm() {
  const { signed_in_by: way } = useMe()
  const [link, setLink] = useState('')
  const goOn = useGoingOn()
  const submit = async () => {
    try {
      if (link !== '') {
        await api.manager.signIn.mutate({ link: secretOf(link) })
        announceSignIn()
      }
      await goOn()
    } catch (thrown) {
      // Of a refusal to sign in nobody else tells.
      throw new Error(toFailure(thrown).message)
    }
  }
  return (
    <DialogForm onSubmit={submit} onCancel={forgetSessionEnd} action={link === '' ? 'Try again' : 'Sign in'}>
      <Text size="sm">
        Your session has ended. What you typed is still on the page, and goes on once you are signed in again.
      </Text>
      {way === 'link' ? (
        <LinkField value={link} onChange={setLink} />
      ) : (
        <Text size="sm" c="dimmed">
          Sign in in another tab, the way you came here; then try again.
        </Text>
      )}
    </DialogForm>
  )
}

interface LinkFieldProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

function LinkField({ value, onChange }: LinkFieldProps) {
  return (
    <Stack gap="xs">
      <Text size="sm">
        This prints a new link beside the server; open it in another tab, or paste it here:
      </Text>
      <Code block>npm run parley -- sign-in</Code>
      <TextInput
        label="Sign-in link"
        placeholder={`${window.location.origin}/console/sign-in#…`}
        autoComplete="off"
        data-autofocus
        value={value}
        onChange={(event) => onChange(event.currentTarget.value.trim())}
      />
    </Stack>
  )
}

/** Looks whether somebody is signed in, and if so goes on; also when another tab says so, or when one comes back to this one. */
function useGoingOn(): () => Promise<void> {
  const queries = useQueryClient()
  const goOn = useCallback(async () => {
    await queries.fetchQuery({ ...meQuery, staleTime: 0 })
    forgetSessionEnd()
    await queries.invalidateQueries()
  }, [queries])
  useEffect(() => {
    const look = () => void goOn().catch(() => {})
    const lookIfShown = () => {
      if (document.visibilityState === 'visible') look()
    }
    const stop = onSignInElsewhere(look)
    document.addEventListener('visibilitychange', lookIfShown)
    return () => {
      stop()
      document.removeEventListener('visibilitychange', lookIfShown)
    }
  }, [goOn])
  return goOn
}
