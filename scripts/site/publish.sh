#!/bin/bash
# Adds the folder site/ as one version to the branch gh-pages, and lists all versions on its first page.
set -euo pipefail
version=$1
git config user.name "$(git log -1 --format=%an)"
git config user.email "$(git log -1 --format=%ae)"
pages=$(mktemp -d)
git worktree add --quiet --detach "$pages"
if git fetch --quiet origin gh-pages:refs/remotes/origin/gh-pages 2>/dev/null; then
  git -C "$pages" checkout --quiet -B gh-pages origin/gh-pages
else
  git -C "$pages" checkout --quiet --orphan gh-pages
  git -C "$pages" rm -rf --quiet .
fi
rm -rf "${pages:?}/$version"
cp -r site "$pages/$version"
cd "$pages"
touch .nojekyll
{
  echo '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
  echo '<title>notification-subscriber</title><h1>notification-subscriber</h1><ul>'
  ls -d [0-9]*/ | tr -d / | sort -rV | sed 's|.*|<li><a href="&/">Version &</a></li>|'
  echo '</ul></html>'
} >index.html
git add --all
git commit --quiet -m "site: version $version"
git push --quiet origin gh-pages
