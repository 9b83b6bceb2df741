/** Shows the sign-in page, and the dialog for signing in again. */
import { Alert, Button, Center, Code, Loader, Paper, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react'
import { api } from '../api.ts'
import { Dialog, DialogForm } from '../components/Dialog.tsx'
import { useTitle } from '../components/PageHeader.tsx'
import { toFailure } from '../failure.ts'
import {
  clearSessionEnd,
  consumeLink,
  hasSessionEnded,
  onSessionChange,
  onSignInElsewhere,
  publishSignIn,
  secretOf,
} from '../session.ts'
import { meQuery, useMe } from './use-me.ts'

/** The page that opens from a sign-in link. */
export function SignInPage() {
  useTitle('Sign in')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { mutate, error, isPending } = useMutation({
    mutationFn: (link: string) => api.manager.signIn.mutate({ link }),
    onSuccess: async () => {
      publishSignIn()
      clearSessionEnd()
      queries.clear()
      await navigate({ to: '/agents', replace: true })
    },
  })
  const hasBegun = useRef(false)
  useEffect(() => {
    if (hasBegun.current) return
    hasBegun.current = true
    const link = consumeLink()
    if (link !== undefined) mutate(link)
  }, [mutate])
  if (isPending) return <SigningIn />
  const proceed = () => void navigate({ to: '/agents', replace: true })
  return <HowToSignIn problem={error === null ? undefined : toFailure(error).message} onSignedIn={proceed} />
}

function SigningIn() {
  return (
    <Card title="Signing in">
      <Loader size="sm" aria-label="Signing in" />
    </Card>
  )
}

/** Shown at every address while the user is signed out; the requested page appears after sign-in. */
export function SignedOutPage({ retry }: { readonly retry: () => void }) {
  useTitle('Sign in')
  const proceed = () => {
    clearSessionEnd()
    retry()
  }
  useEffect(() => onSignInElsewhere(proceed))
  return <HowToSignIn problem={undefined} onSignedIn={proceed} />
}

interface HowToSignInProps {
  readonly problem: string | undefined
  readonly onSignedIn: () => void
}

function HowToSignIn({ problem, onSignedIn }: HowToSignInProps) {
  return (
    <Card title="Sign in to Parley">
      {problem === undefined ? null : (
        <Alert color="red" title="Sign-in failed" role="alert">
          {problem}
        </Alert>
      )}
      <Text size="sm">
        Sign in with a one-time link. The server prints one when it starts for the first time. To get another
        one, run this command on the server:
      </Text>
      <Code block>npm run parley -- sign-in</Code>
      <Text size="sm" c="dimmed">
        The link works once and expires after 15 minutes. If you normally sign in through a proxy, contact its
        operator, because the proxy did not identify you.
      </Text>
      <Button variant="default" onClick={onSignedIn}>
        Continue
      </Button>
    </Card>
  )
}

function Card({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <Center component="main" mih="100vh" p="md" id="content">
      <Paper className="panel" p="xl" w="100%" maw={440}>
        <Stack gap="md">
          <Title order={1}>{title}</Title>
          {children}
        </Stack>
      </Paper>
    </Center>
  )
}

export function SignInAgain() {
  const hasEnded = useSyncExternalStore(onSessionChange, hasSessionEnded)
  return (
    <Dialog title="You are signed out" isOpen={hasEnded} onClose={clearSessionEnd} isAboveAll>
      <SignInForm />
    </Dialog>
  )
}

function SignInForm() {
  const { signed_in_by: way } = useMe()
  const [link, setLink] = useState('')
  const proceed = useProceed()
  const submit = async () => {
    try {
      if (link !== '') {
        await api.manager.signIn.mutate({ link: secretOf(link) })
        publishSignIn()
      }
      await proceed()
    } catch (thrown) {
      // Throws an error without the status, because `problemOf` hides errors with status 401.
      throw new Error(toFailure(thrown).message)
    }
  }
  return (
    <DialogForm onSubmit={submit} onCancel={clearSessionEnd} action={link === '' ? 'Try again' : 'Sign in'}>
      <Text size="sm">
        Your session has ended. Your input is still on the page. Sign in again to continue.
      </Text>
      {way === 'link' ? (
        <LinkField value={link} onChange={setLink} />
      ) : (
        <Text size="sm" c="dimmed">
          Sign in again in another tab, then try again here.
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
        Run this command on the server to get a new link. Open the link in another tab, or paste it here:
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

/**
 * Closes the dialog if the user is signed in. Also runs when another tab signs in and when this tab becomes
 * visible.
 */
function useProceed(): () => Promise<void> {
  const queries = useQueryClient()
  const proceed = useCallback(async () => {
    await queries.fetchQuery({ ...meQuery, staleTime: 0 })
    clearSessionEnd()
    await queries.invalidateQueries()
  }, [queries])
  useEffect(() => {
    const look = () => void proceed().catch(() => {})
    const lookIfShown = () => {
      if (document.visibilityState === 'visible') look()
    }
    const stop = onSignInElsewhere(look)
    document.addEventListener('visibilitychange', lookIfShown)
    return () => {
      stop()
      document.removeEventListener('visibilitychange', lookIfShown)
    }
  }, [proceed])
  return proceed
}
