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
import { t } from '../strings/language.ts'
import { meQuery, useMe } from './use-me.ts'

/** The page that opens from a sign-in link. */
export function SignInPage() {
  useTitle(t('shell.signIn'))
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
    <Card title={t('shell.signingIn')}>
      <Loader size="sm" aria-label={t('shell.signingIn')} />
    </Card>
  )
}

/** Shown at every address while the user is signed out; the requested page appears after sign-in. */
export function SignedOutPage({ retry }: { readonly retry: () => void }) {
  useTitle(t('shell.signIn'))
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
    <Card title={t('shell.signInTitle')}>
      {problem === undefined ? null : (
        <Alert color="red" title={t('shell.signInFailed')} role="alert">
          {problem}
        </Alert>
      )}
      <Text size="sm">{t('shell.signInHelp')}</Text>
      <Code block>npm run parley -- sign-in</Code>
      <Text size="sm" c="dimmed">
        {t('shell.signInExpiry')}
      </Text>
      <Button variant="default" onClick={onSignedIn}>
        {t('shell.continue')}
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
    <Dialog title={t('shell.signedOut')} isOpen={hasEnded} onClose={clearSessionEnd} isAboveAll>
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
    <DialogForm
      onSubmit={submit}
      onCancel={clearSessionEnd}
      action={link === '' ? t('common.tryAgain') : t('shell.signIn')}
    >
      <Text size="sm">{t('shell.sessionEnded')}</Text>
      {way === 'link' ? (
        <LinkField value={link} onChange={setLink} />
      ) : (
        <Text size="sm" c="dimmed">
          {t('shell.signInElsewhere')}
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
      <Text size="sm">{t('shell.newLink')}</Text>
      <Code block>npm run parley -- sign-in</Code>
      <TextInput
        label={t('shell.linkLabel')}
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
