/** What stands around every page: the head, the navigation, and who is signed in. */
import { ActionIcon, AppShell, CloseButton, Drawer, Group, Skeleton } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet } from '@tanstack/react-router'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { isSignedOut } from '../failure.ts'
import { FailureNotice } from './FailureNotice.tsx'
import { Icon } from './icons.tsx'
import { KeySwitch } from './KeySwitch.tsx'
import { Navigation } from './Navigation.tsx'
import { OfflineNotice } from './OfflineNotice.tsx'
import { SignedOutPage } from './SignIn.tsx'
import { SignInAgain } from './SignInAgain.tsx'
import { ThemeSwitch } from './ThemeSwitch.tsx'
import { meQuery } from './use-me.ts'

export function Shell() {
  const { data: me, error, refetch } = useQuery(meQuery)
  if (error !== null && me === undefined && isSignedOut(error))
    return <SignedOutPage retry={() => void refetch()} />
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 216, breakpoint: 'sm', collapsed: { mobile: true } }}
      padding={{ base: 'md', sm: 'lg' }}
    >
      <a className="skip-link" href="#content">
        Skip to the content
      </a>
      <AppShell.Header>
        <Head isKnown={me !== undefined} />
      </AppShell.Header>
      <AppShell.Navbar p="sm" visibleFrom="sm">
        {me === undefined ? <Loading what="the pages" rows={5} height={36} /> : <Navigation />}
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <FailureNotice />
        {me !== undefined ? <Outlet /> : null}
        {me === undefined && error === null ? <Loading what="the console" /> : null}
        {me === undefined && error !== null ? (
          <Failed error={error} what="The console" retry={() => void refetch()} />
        ) : null}
      </AppShell.Main>
      <OfflineNotice />
      {me === undefined ? null : <SignInAgain />}
    </AppShell>
  )
}

function Head({ isKnown }: { readonly isKnown: boolean }) {
  return (
    <Group h="100%" px="md" justify="space-between" wrap="nowrap">
      <Group gap="xs" wrap="nowrap">
        {isKnown ? <PhoneNavigation /> : <Skeleton w={34} h={34} hiddenFrom="sm" />}
        <Link to="/agents" className="brand">
          Parley
        </Link>
      </Group>
      <Group gap="xs" wrap="nowrap">
        <ThemeSwitch />
        {isKnown ? <KeySwitch /> : <Skeleton w={96} h={36} />}
      </Group>
    </Group>
  )
}

function PhoneNavigation() {
  const [isOpen, { open, close }] = useDisclosure(false)
  return (
    <>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        hiddenFrom="sm"
        aria-label="Open the menu"
        onClick={open}
      >
        <Icon name="menu" />
      </ActionIcon>
      <Drawer.Root opened={isOpen} onClose={close} size={260}>
        <Drawer.Overlay />
        <Drawer.Content>
          <Drawer.Body>
            <Group justify="space-between" mb="sm">
              <Drawer.Title fw={600}>Pages</Drawer.Title>
              <CloseButton aria-label="Close the menu" onClick={close} />
            </Group>
            <Navigation onFollow={close} />
          </Drawer.Body>
        </Drawer.Content>
      </Drawer.Root>
    </>
  )
}
