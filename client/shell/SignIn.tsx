/** Where one comes in: through a one-time link, or told how to get one. Decision: 10. */
import { Alert, Button, Center, Code, Loader, Paper, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useEffect, useRef } from 'react'
import { api } from '../api.ts'
import { toFailure } from '../failure.ts'
import { announceSignIn, forgetSessionEnd, onSignInElsewhere } from '../session.ts'
import { spendLink } from '../sign-in-link.ts'
import { useTitle } from './use-title.ts'

/** The page the link leads to. */
export function SignInPage() {
  useTitle('Sign in')
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { mutate, error, isPending } = useMutation({
    mutationFn: (link: string) => api.manager.signIn.mutate({ link }),
    onSuccess: async () => {
      announceSignIn()
      forgetSessionEnd()
      queries.clear()
      await navigate({ to: '/agents', replace: true })
    },
  })
  const hasBegun = useRef(false)
  useEffect(() => {
    if (hasBegun.current) return
    hasBegun.current = true
    const link = spendLink()
    if (link !== undefined) mutate(link)
  }, [mutate])
  if (isPending) return <SigningIn />
  const goOn = () => void navigate({ to: '/agents', replace: true })
  return <HowToSignIn problem={error === null ? undefined : toFailure(error).message} onSignedIn={goOn} />
}

function SigningIn() {
  return (
    <Card title="Signing in">
      <Loader size="sm" aria-label="Signing in" />
    </Card>
  )
}

/** Shown at every address to whoever is not signed in; the page of the address follows once they are. */
export function SignedOutPage({ retry }: { readonly retry: () => void }) {
  useTitle('Sign in')
  const goOn = () => {
    forgetSessionEnd()
    retry()
  }
  useEffect(() => onSignInElsewhere(goOn))
  return <HowToSignIn problem={undefined} onSignedIn={goOn} />
}

interface HowToSignInProps {
  readonly problem: string | undefined
  readonly onSignedIn: () => void
}

function HowToSignIn({ problem, onSignedIn }: HowToSignInProps) {
  return (
    <Card title="Sign in to Parley">
      {problem === undefined ? null : (
        <Alert color="red" title="This link did not work" role="alert">
          {problem}
        </Alert>
      )}
      <Text size="sm">
        A one-time link signs you in. The server prints one when it starts for the first time; whenever you
        need another, run this beside it:
      </Text>
      <Code block>npm run parley -- sign-in</Code>
      <Text size="sm" c="dimmed">
        The link works once, within 15 minutes. Where a proxy signs people in, it has not said who you are:
        ask whoever runs it.
      </Text>
      <Button variant="default" onClick={onSignedIn}>
        I am signed in now
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
